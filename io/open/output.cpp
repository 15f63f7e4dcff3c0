// SPDX-License-Identifier: Apache-2.0
// output.cpp: chooses the writer for a name, and refuses to overwrite the input.
#include "io/open/output.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/file/input_file.hpp"
#include "io/file/rereadable.hpp"
#include "io/file/text_output.hpp"
#include "io/open/formats.hpp"
#include "io/report/report_file.hpp"
#include "io/write/factor_files.hpp"

namespace qrtool {
namespace {

/// Whether two names mean one file, which need not exist.
bool is_same_name(const std::string& one, const std::string& other) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::equivalent(one, other, error)) return true;
  const auto resolved = [](const std::string& name) {
    std::error_code failed;
    const fs::path path = fs::weakly_canonical(fs::absolute(name, failed), failed);
    return failed ? fs::path(name).lexically_normal() : path;
  };
  return resolved(one) == resolved(other);
}

/// Refuses an ending that promises another format than HDF5 or text, and a path in a file or a part
/// of one.
void refuse_wrong_name(const std::string& output) {
  constexpr std::string_view foreign[] = {
      ".mat", ".mm",  ".parquet", ".feather", ".arrow", ".json",        ".xlsx", ".xls",  ".ods",
      ".rds", ".rda", ".rdata",   ".pkl",     ".pt",    ".safetensors", ".tif",  ".tiff", ".png",
      ".jpg", ".gz",  ".bz2",     ".xz",      ".zst",   ".zip",         ".zarr"};
  const std::string ending = ending_of(output);
  if (std::find(std::begin(foreign), std::end(foreign), ending) != std::end(foreign)) {
    const std::string rest = output.substr(0, output.size() - ending.size());
    const std::string stem = escape(rest);
    const bool names_a_format = ending_of(rest) == ".h5" || ending_of(rest) == ".hdf5" ||
                                &format_of_output(rest) != formats().back();
    throw UsageError(
        fmt::format("'{}': {} files cannot be written", escape(output), ending),
        names_a_format
            ? "write " + stem
            : fmt::format(
                  "write {0}.h5 (HDF5, which h5py, MATLAB, Octave and Julia read) or {0}.csv",
                  stem));
  }
  std::size_t colon = std::min(output.find(":/"), output.find(":["));
  if (colon != std::string::npos && std::filesystem::is_directory(output.substr(0, colon + 1)))
    return;
  if (colon == std::string::npos && ending.starts_with(".npz:"))
    colon = output.size() - ending.size() + std::string_view(".npz").size();
  if (colon == std::string::npos) return;
  throw UsageError(
      fmt::format("'{}': the output is a file; its datasets have fixed names", escape(output)),
      "write " + escape(output.substr(0, colon)));
}

}  // namespace

std::unique_ptr<Writer> create_output(const OutputSpec& spec) {
  refuse_wrong_name(spec.path);
  return format_of_output(spec.path).create_output(spec);
}

std::size_t output_workspace_bytes(const OutputSpec& spec) {
  const auto workspace_bytes = format_of_output(spec.path).output_workspace_bytes;
  return workspace_bytes == nullptr ? 0 : workspace_bytes(spec);
}

std::unique_ptr<OutputFile> create_output_file(const OutputSpec& root,
                                               std::span<const OutputSpec> planned) {
  refuse_wrong_name(root.path);
  const SeveralDatasets* several = format_of_output(root.path).several;
  if (several == nullptr) {
    throw UsageError(fmt::format("'{}': only an HDF5 file holds the factors of several datasets",
                                 escape(root.path)),
                     "let the name of OUT end in .h5, or factor one --dataset after another");
  }
  return several->create_file(root, planned);
}

void refuse_same_file(const std::string& input, const std::string& output) {
  struct stat in {
  }, out{};
  const int found = is_standard_input(input) ? fstat(STDIN_FILENO, &in)
                                             : stat(split_location(input).file.c_str(), &in);
  if (found != 0) return;
  std::vector<std::string> names = format_of_output(output).files_of_output(output);
  names.push_back(output);
  for (const std::string& name : names) {
    // Standard input and standard output may be one terminal.
    const int is_missing =
        is_standard_output(name) ? fstat(STDOUT_FILENO, &out) : stat(name.c_str(), &out);
    if (is_missing == 0 && S_ISREG(out.st_mode) && in.st_dev == out.st_dev &&
        in.st_ino == out.st_ino) {
      throw UsageError(fmt::format("'{}': input and output are the same file", escape(name)));
    }
  }
}

void check_report_name(const std::string& factors, const std::string& report) {
  check_report_ending(report);
  std::vector<std::string> names = format_of_output(factors).files_of_output(factors);
  names.push_back(factors);
  for (const std::string& name : names) {
    if (!is_same_name(name, report)) continue;
    throw UsageError(fmt::format("--report '{}' would be a file of the factors '{}'",
                                 escape(report), escape(factors)),
                     "give the report a name of its own");
  }
}

void refuse_existing(const std::string& name) {
  struct stat info {};
  if (stat(name.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return;
  throw OutputError(fmt::format("'{}' exists", escape(name)), "use --force to replace it");
}

void check_output_names(const std::string& output, const std::string& report, bool force) {
  refuse_wrong_name(output);
  if (!report.empty()) check_report_name(output, report);
  if (force) return;
  std::vector<std::string> names = format_of_output(output).files_of_output(output);
  if (!report.empty()) names.push_back(report);
  for (const std::string& name : names) refuse_existing(name);
}

void check_table_names(const std::string& output, bool force) {
  if (force || is_standard_output(output) || !format_of_output(output).takes_csv_options) return;
  refuse_existing(output);
  refuse_existing(report_file(output, ".json"));
}

}  // namespace qrtool

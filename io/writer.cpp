// SPDX-License-Identifier: Apache-2.0
// writer.cpp: chooses the writer for a name, and refuses to overwrite the input.
#include "io/writer.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/csv/writer.hpp"
#include "io/file/input_file.hpp"
#include "io/hdf5/writer.hpp"

namespace qrtool {

std::unique_ptr<Writer> create_output(const OutputSpec& spec) {
  return has_text_ending(spec.path) ? create_csv(spec) : create_hdf5(spec);
}

void refuse_same_file(const std::string& input, const std::string& output) {
  struct stat in {
  }, out{};
  const int found =
      input == "-" ? fstat(STDIN_FILENO, &in) : stat(split_location(input).file.c_str(), &in);
  if (found != 0) return;
  std::vector<std::string> names{output};
  if (has_text_ending(output)) {
    for (const char* dataset : {"Q", "R", "V", "tau", "report"}) {
      names.push_back(csv_name(output, dataset));
    }
  }
  for (const std::string& name : names) {
    if (stat(name.c_str(), &out) == 0 && in.st_dev == out.st_dev && in.st_ino == out.st_ino) {
      throw UsageError(fmt::format("'{}': input and output are the same file", escape(name)));
    }
  }
}

}  // namespace qrtool

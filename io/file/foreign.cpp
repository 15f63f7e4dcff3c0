// SPDX-License-Identifier: Apache-2.0
// foreign.cpp: the first bytes and the names of files that other programs write.
#include "io/file/foreign.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/file/input_file.hpp"
#include "io/file/rereadable.hpp"

namespace qrtool {
namespace {

using std::string_view_literals::operator""sv;

/// A format that cannot be read, and the way to one that can.
struct Foreign {
  std::string_view name, hint;
};
constexpr std::string_view matlab_hint =
    "write it again: in MATLAB by save -v7.3, in Octave by save -hdf5";
constexpr std::string_view frame_hint =
    "in pandas: numpy.save('a.npy', frame.to_numpy(dtype=float))";
constexpr std::string_view pickle_hint = "in Python: numpy.save('a.npy', array)";
constexpr std::string_view netcdf_hint = "convert it: nccopy -k nc4 {} new.nc";
constexpr std::string_view excel_hint = "save the sheet as CSV";
constexpr std::string_view r_hint = "in R, load() or readRDS() it, then write.csv(x, \"x.csv\")";

constexpr std::string_view tensors_hint =
    "in Python: numpy.savez('a.npz', **safetensors.numpy.load_file('{}'))";
constexpr std::string_view fits_hint =
    "in Python: numpy.save('a.npy', astropy.io.fits.getdata('{}').astype(float))";

constexpr Foreign mat_file{"a MAT-file of version 5 to 7", matlab_hint},
    old_mat_file{"a MAT-file of version 4", matlab_hint},
    octave{"a binary file of Octave", matlab_hint}, parquet{"a Parquet file", frame_hint},
    feather{"an Arrow or Feather file", frame_hint}, pickle{"a pickle of Python", pickle_hint},
    classic{"a netCDF-3 file", netcdf_hint}, of_r{"a file of R", r_hint},
    fits{"a FITS file", fits_hint}, tensors{"a file of safetensors", tensors_hint},
    old_excel{"an Excel workbook", excel_hint};

constexpr std::pair<std::string_view, const Foreign*> signatures[] = {
    {"MATLAB 5.0 MAT-file", &mat_file},
    {"Octave-1-L", &octave},
    {"Octave-1-B", &octave},
    {"PAR1\x15", &parquet},
    {"ARROW1\0\0"sv, &feather},
    {"SIMPLE  =", &fits},
    {"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", &old_excel},
    {"\x80\x02", &pickle},
    {"\x80\x03", &pickle},
    {"\x80\x04", &pickle},
    {"\x80\x05", &pickle},
    // Protocols 0 and 1 have no number: lists, dictionaries, arrays, and frames of pandas.
    {"(lp0\n", &pickle},
    {"(dp0\n", &pickle},
    {"]q\0"sv, &pickle},
    {"}q\0"sv, &pickle},
    {"cnumpy.", &pickle},
    {"ccopy_reg\n", &pickle},
    {"CDF\x01", &classic},
    {"CDF\x02", &classic},
    {"CDF\x05", &classic},
    {"RDX2\nX\n", &of_r},
    {"RDX3\nX\n", &of_r},
    {"RDA2\nA\n", &of_r},
    {"RDA3\nA\n", &of_r},
    {"RDB2\nB\n", &of_r},
    {"RDB3\nB\n", &of_r},
    {"X\n\0\0\0"sv, &of_r},
    {"B\n\x02\0\0\0"sv, &of_r},
    {"B\n\x03\0\0\0"sv, &of_r}};

constexpr std::pair<std::string_view, const Foreign*> foreign_names[] = {
    {".rds", &of_r}, {".rda", &of_r}, {".rdata", &of_r}, {".pkl", &pickle}, {".pickle", &pickle}};

/// Whether it begins like saveRDS(ascii = TRUE): the fourth line is the oldest release of R that
/// reads it.
bool is_text_of_r(std::string_view head) {
  if (!head.starts_with("A\n2\n") && !head.starts_with("A\n3\n")) return false;
  const std::size_t end = head.find('\n', 4);
  if (end == std::string_view::npos) return false;
  const std::string_view oldest = head.substr(end + 1, 7);
  return oldest == "131840\n" || oldest == "197888\n";
}

/// Whether it begins like a MAT-file of version 4: a type, rows, columns, 0 or 1 for complex
/// numbers, the length of a name, and this name, which ends in a zero.
bool is_old_mat_file(std::string_view head) {
  constexpr std::size_t header = 20;
  if (head.size() < header) return false;
  for (const bool is_little : {true, false}) {
    std::uint32_t numbers[5] = {};
    for (std::size_t i = 0; i < header; ++i) {
      const auto byte = static_cast<std::uint32_t>(static_cast<unsigned char>(head[i]));
      numbers[i / 4] |= byte << (8 * (is_little ? i % 4 : 3 - i % 4));
    }
    const auto [type, rows, columns, complex, length] = numbers;
    const std::uint32_t order = is_little ? 0 : 1, digit = type % 1000;
    if (type / 1000 != order || digit / 10 > 5 || digit % 10 > 2 || rows == 0 || columns == 0 ||
        complex > 1 || length < 2 || header + length > head.size())
      continue;
    const std::string_view name = head.substr(header, length);
    if (name.find('\0') == length - 1) return true;
  }
  return false;
}

/// Whether it begins like a file of safetensors: the length of a JSON object, in eight bytes, and
/// its first name.
bool is_of_safetensors(std::string_view head) {
  return head.size() > 10 && head.substr(4, 4) == "\0\0\0\0"sv && head.substr(8, 2) == "{\"";
}

/// Returns the format whose files begin like this, or null.
const Foreign* foreign_format(std::string_view head) {
  for (const auto& [signature, format] : signatures)
    if (head.starts_with(signature)) return format;
  if (is_text_of_r(head)) return &of_r;
  if (is_of_safetensors(head)) return &tensors;
  return is_old_mat_file(head) ? &old_mat_file : nullptr;
}

[[noreturn]] void throw_foreign(const Foreign& format, const std::string& path) {
  const bool is_standard = is_standard_input(path);
  throw InputError(
      fmt::format("{}: {}; it cannot be read",
                  is_standard ? std::string(standard_input) : escape(path), format.name),
      fmt::format(fmt::runtime(format.hint), is_standard ? "FILE" : escape(path)));
}

}  // namespace

void refuse_foreign_format(std::string_view head, const std::string& path) {
  if (const Foreign* format = foreign_format(head)) throw_foreign(*format, path);
}

void refuse_foreign_name(const std::string& path) {
  const std::string ending = ending_of(path);
  for (const auto& [known, format] : foreign_names)
    if (ending == known) throw_foreign(*format, path);
}

}  // namespace qrtool

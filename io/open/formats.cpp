// SPDX-License-Identifier: Apache-2.0
// formats.cpp: the list of formats, and the choice of one.
#include "io/open/formats.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "io/csv/format.hpp"
#include "io/file/descriptor.hpp"
#include "io/file/rereadable.hpp"
#include "io/file/text_output.hpp"
#include "io/hdf5/format.hpp"
#include "io/mtx/format.hpp"
#include "io/npy/format.hpp"
#include "io/octave/format.hpp"

namespace qrtool {

std::span<const Format* const> formats() {
  static constexpr std::array all{&npy_format,    &npz_format, &mtx_format,
                                  &octave_format, &csv_format, &hdf5_format};
  return all;
}

namespace {

/// Returns the format of data from a pipe. Errors: InputError for files of datasets, which cannot
/// be read from a pipe.
const Format& format_of_standard_input() {
  const Descriptor copy(open_rereadable("-"));
  const Content content = sniff(copy, std::string(standard_input));
  if (content == Content::hdf5 || content == Content::zip)
    throw InputError(fmt::format("{}: holds {}; text, .npy and Matrix Market come through a pipe",
                                 standard_input, content == Content::hdf5 ? "HDF5" : "a .npz file"),
                     "write it to a file, and name that");
  if (content == Content::octave_text) return octave_format;
  return content == Content::npy ? npy_format : csv_format;
}

}  // namespace

const Format& format_of_input(const std::string& file) {
  if (is_standard_input(file)) return format_of_standard_input();
  readable_size(file);
  const Content content = sniff(file);
  return **std::find_if(formats().begin(), formats().end(),
                        [&](const Format* format) { return format->is_input(file, content); });
}

const Format& format_of_output(const std::string& path) {
  if (path == standard_output_text) return csv_format;
  const std::string ending = ending_of(path);
  const auto takes = [&](const Format* format) {
    const auto& endings = format->endings;
    return std::find(endings.begin(), endings.end(), ending) != endings.end();
  };
  const auto found = std::find_if(formats().begin(), formats().end(), takes);
  return found == formats().end() ? *formats().back() : **found;
}

}  // namespace qrtool

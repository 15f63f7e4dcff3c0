// SPDX-License-Identifier: Apache-2.0
// format.cpp: the list of formats, and the choice of one.
#include "io/format.hpp"

#include <algorithm>
#include <array>

#include "io/csv/format.hpp"
#include "io/file/rereadable.hpp"
#include "io/file/text_output.hpp"
#include "io/hdf5/format.hpp"
#include "io/mtx/format.hpp"
#include "io/npy/format.hpp"

namespace qrtool {

std::span<const Format* const> formats() {
  static constexpr std::array all{&npy_format, &npz_format, &mtx_format, &csv_format, &hdf5_format};
  return all;
}

const Format& format_of_input(const std::string& file) {
  Content content = Content::text;
  if (!is_standard_input(file)) {
    readable_size(file);
    content = sniff(file);
  }
  return **std::find_if(formats().begin(), formats().end(),
                        [&](const Format* format) { return format->is_input(file, content); });
}

const Format& format_of_output(const std::string& path) {
  if (is_standard_output(path)) return csv_format;
  const std::string ending = ending_of(path);
  const auto takes = [&](const Format* format) {
    const auto& endings = format->endings;
    return std::find(endings.begin(), endings.end(), ending) != endings.end();
  };
  const auto found = std::find_if(formats().begin(), formats().end(), takes);
  return found == formats().end() ? *formats().back() : **found;
}

}  // namespace qrtool

// SPDX-License-Identifier: Apache-2.0
// kernel_text.cpp: edits kernel files line by line.
#include "gpu/host/kernel_text.hpp"

#include <algorithm>
#include <cctype>

namespace qrtool {
namespace {

constexpr std::string_view begin_mark = "\n__kernel ", end_mark = "\n}\n";

/// The word before the first "(" that follows "void".
std::string name_of_kernel(std::string_view kernel) {
  const std::size_t end = kernel.find('(', kernel.find("void "));
  const std::size_t begin = kernel.find_last_of(' ', end) + 1;
  return std::string(kernel.substr(begin, end - begin));
}

/// Such as TILED(subtract).
bool is_macro(const std::string& name) {
  return std::ranges::all_of(name, [](unsigned char c) { return std::isupper(c) != 0; });
}

}  // namespace

std::string without_unrolling(std::string_view text) {
  constexpr std::string_view pragma = "#pragma unroll";
  std::string result;
  while (true) {
    const std::size_t at = text.find(pragma);
    result += text.substr(0, at);
    if (at == std::string_view::npos) return result;
    text.remove_prefix(at);
    const std::size_t end = text.find('\n');
    if (text.substr(pragma.size(), end - pragma.size()) == " 1") result += text.substr(0, end);
    text.remove_prefix(end);
  }
}

std::string with_kernels(std::string_view text, const std::set<std::string>& names) {
  std::string result;
  while (true) {
    const std::size_t begin = text.find(begin_mark);
    const std::size_t end = text.find(end_mark, begin);
    if (begin == std::string_view::npos || end == std::string_view::npos) break;
    const std::string_view kernel = text.substr(begin, end + end_mark.size() - 1 - begin);
    result += text.substr(0, begin);
    const std::string name = name_of_kernel(kernel);
    if (names.contains(name) || is_macro(name)) {
      result += kernel;
    } else {
      result.append(static_cast<std::size_t>(std::ranges::count(kernel, '\n')), '\n');
    }
    text.remove_prefix(begin + kernel.size());
  }
  result += text;
  return result;
}

}  // namespace qrtool

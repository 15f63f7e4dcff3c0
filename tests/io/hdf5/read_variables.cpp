// SPDX-License-Identifier: Apache-2.0
// read_variables.cpp: says what the tool reads of variables, many in one run. Each line of standard
// input is a JSON object with "file", and perhaps "raw_values" and "single"; each line of standard
// output says what was read: {"error"} or {"shape", "numbers", "type", "details", "notes"}.
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "io/open/input.hpp"
#include "io/read/reader.hpp"

namespace qrtool {
namespace {

using Json = nlohmann::ordered_json;

/// Returns all numbers in the order of the file, with null for NaN and a text for infinity.
template <class T>
Json numbers_of(Reader& reader) {
  const Source& s = reader.source();
  std::vector<T> values(static_cast<std::size_t>(s.count() * s.m * s.n));
  // The first matrices are read at once, the last ones by rows.
  const index_t whole = s.count() / 2;
  reader.read(0, packed(values.data(), whole, s.m, s.n));
  for (index_t b = whole; b < s.count(); ++b)
    for (index_t i = 0; i < s.m; ++i)
      reader.read_rows(b, i, MatrixView<T>{&values[(b * s.m + i) * s.n], 1, s.n, s.n});
  Json numbers = Json::array();
  for (const T value : values) {
    if (std::isnan(value)) {
      numbers.push_back(nullptr);
    } else if (std::isinf(value)) {
      numbers.push_back(value > 0 ? "inf" : "-inf");
    } else {
      numbers.push_back(static_cast<double>(value));
    }
  }
  return numbers;
}

Json read_variable(const Json& asked) {
  const auto reader = open_input(
      {.path = asked.at("file"), .dataset = {}, .raw_values = asked.value("raw_values", false)});
  const Source& source = reader->source();
  Json details = Json::object();
  for (const auto& [name, word] : source.details) details[name] = word;
  return {{"shape", dims_of(source)},
          {"numbers",
           asked.value("single", false) ? numbers_of<float>(*reader) : numbers_of<double>(*reader)},
          {"type", name_of(source.type)},
          {"details", details},
          {"notes", source.notes}};
}

}  // namespace
}  // namespace qrtool

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    try {
      std::cout << qrtool::read_variable(qrtool::Json::parse(line)).dump() << std::endl;
    } catch (const qrtool::Error& error) {
      std::cout << qrtool::Json{{"error", error.what()}, {"hint", error.hint()}}.dump()
                << std::endl;
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// read_tables.cpp: says what the tool reads of tables, many in one run. Each line of standard input
// is a JSON object with "file", and perhaps "csv" (options by their recorded names), "response" and
// "weights"; each line of standard output says what was read: {"error"} or {"names", "a", "b", "w",
// "notes"}.
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "app/solve/solve_inputs.hpp"
#include "core/error.hpp"
#include "core/machine/host.hpp"
#include "io/open/input.hpp"

namespace qrtool {
namespace {

using Json = nlohmann::ordered_json;

/// Returns the rows of all matrices, with null for NaN.
Json numbers_of(Reader& reader) {
  const Source& source = reader.source();
  Json rows = Json::array();
  std::vector<double> row(static_cast<std::size_t>(source.n));
  for (index_t b = 0; b < source.count(); ++b) {
    for (index_t i = 0; i < source.m; ++i) {
      reader.read_rows(b, i, MatrixView<double>{row.data(), 1, source.n, source.n});
      Json numbers = Json::array();
      for (const double number : row) numbers.push_back(std::isnan(number) ? Json() : Json(number));
      rows.push_back(numbers);
    }
  }
  return rows;
}

CsvOptions options_of(const Json& asked) {
  TextPairs pairs;
  const Json options = asked.value("csv", Json::object());
  for (const auto& [name, word] : options.items())
    pairs.emplace_back(name, word.get<std::string>());
  return with_recorded({}, pairs);
}

Json read_table(const Json& asked) {
  const std::string file = asked.at("file"), response = asked.value("response", "");
  if (response.empty()) {
    const auto reader = open_input({.path = file, .dataset = {}, .csv = options_of(asked)});
    return {{"names", reader->source().table.names()},
            {"a", numbers_of(*reader)},
            {"notes", reader->source().notes}};
  }
  SystemOptions system;
  system.response = response;
  system.weights = asked.value("weights", "");
  const SolveInputs inputs = open_solve_inputs({.a = file, .b = "", .csv = options_of(asked)},
                                               system, Order::automatic, host_limits({}, 1));
  return {{"names", inputs.names},
          {"a", numbers_of(*inputs.a)},
          {"b", numbers_of(*inputs.b)},
          {"w", inputs.w ? numbers_of(*inputs.w) : Json()},
          {"notes", inputs.a->source().notes}};
}

}  // namespace
}  // namespace qrtool

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    try {
      std::cout << qrtool::read_table(qrtool::Json::parse(line)).dump() << std::endl;
    } catch (const qrtool::Error& error) {
      std::cout << qrtool::Json{{"error", error.what()}}.dump() << std::endl;
    }
  }
}

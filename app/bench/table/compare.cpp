// SPDX-License-Identifier: Apache-2.0
// compare.cpp: finds the cases of an earlier run by their text.
#include "app/bench/table/compare.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/file/read_text.hpp"

namespace qrtool {
namespace {

using Json = nlohmann::ordered_json;

/// The words of the JSON that must be equal for two runs to be comparable.
constexpr const char* common_words[] = {"precision", "arithmetic", "mode",    "ridge",
                                        "sign",      "cold",       "portable"};

/// Returns the name of a case: "1,000 of 64x64, gauss, 2 threads". Equal names are the same case.
std::string name_of_case(const Json& one) {
  std::string text = fmt::format("{} of {}x{}, {}", format_count(one.at("batch").get<index_t>()),
                                 one.at("m").get<index_t>(), one.at("n").get<index_t>(),
                                 escape(one.at("kind").get<std::string>()));
  if (!one.at("threads").is_null())
    text += fmt::format(", {} threads", one.at("threads").get<int>());
  return text;
}

Json parse_export(const std::string& path) {
  const std::optional<std::string> text = read_text(path);
  if (!text) throw InputError(fmt::format("{}: cannot be read", escape(path)));
  Json earlier = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!earlier.is_object() || earlier.value("schema", Json()) != "qrtool.bench/1")
    throw InputError(fmt::format("{}: is not what bench --export-json writes", escape(path)));
  return earlier;
}

}  // namespace

Comparison::Comparison(const std::string& path, const BenchResult& result) : path_(escape(path)) {
  Json earlier = parse_export(path);
  const Json now = Json::parse(to_json(result));
  earlier.emplace("ridge", 0.0);  // which earlier versions did not have
  try {
    for (const char* word : common_words)
      if (earlier.at(word) != now.at(word))
        throw UsageError(fmt::format("--compare: {} has {} {}, and this run has {}", path_, word,
                                     escape(earlier.at(word).dump()), now.at(word).dump()));
    for (const Json& one : earlier.at("cases"))
      if (!one.at("seconds").is_null())
        medians_[name_of_case(one)] = one.at("seconds").at("median").get<double>();
  } catch (const Json::exception& error) {
    throw InputError(fmt::format("{}: is not what this version of bench --export-json writes: {}",
                                 path_, escape(error.what())));
  }
  BenchResult all = result;
  all.rows.clear();
  for (const BenchCase& size : result.cases) {
    all.rows.emplace_back().size = size;
    all.rows.back().baselines.resize(result.header.baselines.size());
  }
  const Json wanted = Json::parse(to_json(all));
  for (const Json& one : wanted.at("cases"))
    if (!medians_.contains(name_of_case(one)))
      throw InputError(fmt::format("{}: has no time of {}", path_, name_of_case(one)));
}

std::vector<std::string> Comparison::slower(const BenchResult& result, double tolerance) const {
  std::vector<std::string> lines;
  const Json now = Json::parse(to_json(result));
  for (const Json& one : now.at("cases")) {
    const std::string text = name_of_case(one);
    if (one.at("seconds").is_null())
      throw LimitError(fmt::format("--compare: this run has no time of {}", text));
    const double median = one.at("seconds").at("median").get<double>(), before = medians_.at(text);
    if (!(median <= (1 + tolerance) * before))
      lines.push_back(fmt::format("{}: {} ms, {:.2f} times the {} ms of {}", text,
                                  format_figure(median * 1e3), median / before,
                                  format_figure(before * 1e3), path_));
  }
  return lines;
}

}  // namespace qrtool

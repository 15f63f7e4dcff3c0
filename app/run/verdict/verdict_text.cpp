// SPDX-License-Identifier: Apache-2.0
// verdict_text.cpp: names matrices as the input does, and the worst errors.
#include "app/run/verdict/verdict_text.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "core/join.hpp"
#include "core/text.hpp"

namespace qrtool {

using Json = nlohmann::ordered_json;

std::string matrix_name(std::span<const index_t> leading, index_t matrix) {
  if (leading.size() < 2) return fmt::format("{}", matrix);
  std::vector<index_t> position(leading.size());
  for (std::size_t d = leading.size(); d-- > 0; matrix /= leading[d])
    position[d] = matrix % leading[d];
  return fmt::format("[{}]", join(position, ","));
}

std::string worst_line(const Verdict& verdict, std::span<const index_t> leading) {
  if (verdict.residual().matrix < 0) return {};
  const auto one = [&](std::string_view name, const WorstError& worst,
                       std::string_view of_its_bar) {
    std::string text = fmt::format("{} {:.2g}", name, worst.error);
    if (worst.error != 0)
      text += fmt::format(" ({:.2g}{}, matrix {})", worst.ratio, of_its_bar,
                          matrix_name(leading, worst.matrix));
    return text;
  };
  std::string line = "worst " + one("residual", verdict.residual(), " of its bar");
  if (verdict.has_q()) line += ", " + one("orthogonality", verdict.orthogonality(), "");
  return line + ", " + one("lower", verdict.lower(), "");
}

std::string error_text(std::string_view name, double error, double bar,
                       std::string_view of_its_bar) {
  return fmt::format("{} {:.2g} ({:.2g}{})", name, error, in_bars(error, bar), of_its_bar);
}

std::string passed_text(index_t passed, index_t all, std::span<const NamedCount> others) {
  if (passed == all) return fmt::format("all {} pass", format_count(passed));
  std::string text = fmt::format("{} of {} pass", format_count(passed), format_count(all));
  for (const auto& [count, name] : others)
    if (count > 0) text += fmt::format(", {} {}", format_count(count), name);
  return text;
}

std::string route_text(const RouteCounts& routes) {
  return fmt::format(
      "{} by A'A in one pass, {} in two passes, {} in further passes, {} by reflectors, {} in a "
      "second "
      "try",
      format_count(routes.first_pass), format_count(routes.second_pass),
      format_count(routes.further_passes), format_count(routes.reflectors),
      format_count(routes.second_try));
}

Json to_json(const RouteCounts& routes) {
  return {{"only", routes.only},
          {"first_pass", routes.first_pass},
          {"second_pass", routes.second_pass},
          {"further_passes", routes.further_passes},
          {"reflectors", routes.reflectors},
          {"second_try", routes.second_try}};
}

Json to_json(const Measurement& measured, bool has_q) {
  const auto one = [](double error, double bar) -> Json {
    return {{"error", error}, {"ratio", in_bars(error, bar)}};
  };
  const auto& [matrix, status, errors, bars] = measured;
  return {{"matrix", matrix},
          {"status", name_of(status)},
          {"residual", one(errors.residual, bars.residual)},
          {"orthogonality", has_q ? one(errors.orthogonality, bars.orthogonality) : Json()},
          {"lower", one(errors.lower, bars.lower)}};
}

Json to_json(std::span<const Measurement> measured, bool has_q) {
  Json list = Json::array();
  for (const Measurement& each : measured) list.push_back(to_json(each, has_q));
  return list;
}

Json to_json(const Verdict& verdict, Check check) {
  const auto one = [](const WorstError& worst) -> Json {
    if (worst.matrix < 0) return nullptr;
    return {{"error", worst.error}, {"ratio", worst.ratio}, {"matrix", worst.matrix}};
  };
  return {{"kind", name_of(check)},
          {"matrices", verdict.matrices()},
          {"passed", verdict.count(Status::ok)},
          {"failed", verdict.failed()},
          {"status",
           {{"ok", verdict.count(Status::ok)},
            {"above_bar", verdict.count(Status::above_bar)},
            {"non_finite", verdict.count(Status::non_finite)},
            {"r_overflows", verdict.count(Status::r_overflows)},
            {"unchecked", verdict.count(Status::unchecked)}}},
          {"worst",
           {{"residual", one(verdict.residual())},
            {"orthogonality", one(verdict.orthogonality())},
            {"lower", one(verdict.lower())}}}};
}

}  // namespace qrtool

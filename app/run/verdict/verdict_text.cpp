// SPDX-License-Identifier: Apache-2.0
// verdict_text.cpp: names matrices as the input does, and says how many pass and how well.
#include "app/run/verdict/verdict_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "app/process/console.hpp"
#include "core/join.hpp"
#include "core/text.hpp"

namespace qrtool {
namespace {

using Json = nlohmann::ordered_json;

/// Returns the errors that were measured, each with the name of its matrix or solution if the
/// verdict is given.
std::string errors_text(const std::array<MeasuredError, 3>& errors, const Subject& subject,
                        const Verdict* named_by_verdict) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < errors.size(); ++i) {
    if (errors[i].at < 0) continue;
    std::string name(subject.errors[i]);
    std::ranges::replace(name, '_', ' ');
    std::string part = fmt::format("{} {:.2g}", name, errors[i].error);
    if (errors[i].error != 0) {
      part += fmt::format(" ({:.2g}{}", errors[i].ratio, parts.empty() ? " of its bar" : "");
      if (named_by_verdict != nullptr)
        part += fmt::format(", {} {}", subject.place, named_by_verdict->name_of(errors[i].at));
      part += ')';
    }
    parts.push_back(std::move(part));
  }
  return join(parts, ", ");
}

}  // namespace

std::string matrix_name(std::span<const index_t> leading, index_t matrix) {
  if (leading.size() < 2) return fmt::format("{}", matrix);
  std::vector<index_t> position(leading.size());
  for (std::size_t d = leading.size(); d-- > 0; matrix /= leading[d])
    position[d] = matrix % leading[d];
  return fmt::format("[{}]", join(position, ","));
}

NameOf named_by(std::vector<index_t> leading) {
  return [leading = std::move(leading)](index_t at) { return matrix_name(leading, at); };
}

std::string counted(index_t count, const Subject& subject) {
  return fmt::format("{} {}", format_count(count), count == 1 ? subject.one : subject.many);
}

std::string_view words_of(Status status, const Subject& subject) {
  if (status == Status::r_overflows) return subject.overflow;
  constexpr std::string_view words[] = {"ok", "above the bar", "not finite",
                                        "",   "unchecked",     "NaN: too few rows"};
  return words[static_cast<std::size_t>(status)];
}

std::string worst_line(const Verdict& verdict) {
  const std::string errors = errors_text(verdict.worst(), verdict.subject(), &verdict);
  return errors.empty() ? "" : "worst " + errors;
}

std::string line_of(const Judged& one, const Verdict& verdict) {
  std::string found =
      one.reason != nullptr ? one.reason : errors_text(one.errors, verdict.subject(), nullptr);
  if (one.reason == nullptr && !std::isnan(one.residual_norm))
    found += fmt::format(", residual norm {:.6g}", one.residual_norm);
  return fmt::format("{} {} {}: {}\n", verdict.subject().place, verdict.name_of(one.at),
                     one.fails() ? "fails" : "passes", found);
}

std::string verdict_line(const Verdict& verdict, bool may_be_red) {
  const index_t passed = verdict.count(Status::ok), unchecked = verdict.count(Status::unchecked);
  const index_t all = verdict.all();
  const bool is_one = all == 1, are_unchecked = unchecked == all && all > 0;
  if (is_one && (passed == 1 || are_unchecked))
    return fmt::format("the {} {}", verdict.subject().one, passed == 1 ? "passes" : "is unchecked");
  if (passed == all || are_unchecked)
    return fmt::format("all {} {}", format_count(all), are_unchecked ? "unchecked" : "pass");
  std::string text = fmt::format("{} of {} pass", format_count(passed), format_count(all));
  for (std::uint8_t s = 1; s < solution_status_names.size(); ++s)
    if (const index_t count = verdict.count(Status{s}); count > 0)
      text += fmt::format(", {} {}", format_count(count), words_of(Status{s}, verdict.subject()));
  return may_be_red && verdict.failed() > 0 ? in_red(text) : text;
}

std::string second_try_line(const Verdict& verdict) {
  if (verdict.second_tries == 0) return "";
  return counted(verdict.second_tries, verdict.subject()) +
         " came from a second try by reflectors\n";
}

std::string r_alone_line(std::string_view how) {
  return fmt::format("R alone: the residual is ||A'A - R'R|| / ||A||^2{}, a weaker check\n", how);
}

std::string route_text(const RouteCounts& routes) {
  return fmt::format(
      "{} by A'A in one pass, {} in two passes, {} in further passes, {} by reflectors, {} in a "
      "second try",
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

Json to_json(const MeasuredError& measured, std::string_view place) {
  if (measured.at < 0) return nullptr;
  Json json{{"error", measured.error}, {"ratio", measured.ratio}};
  if (!place.empty()) json[std::string(place)] = measured.at;
  return json;
}

Json to_json(const Verdict& verdict) {
  const Subject& subject = verdict.subject();
  Json status = Json::object(), worst = Json::object();
  for (std::uint8_t s = 0; s < subject.statuses.size(); ++s)
    if (!subject.statuses[s].empty())
      status[std::string(subject.statuses[s])] = verdict.count(Status{s});
  for (std::size_t i = 0; i < subject.errors.size(); ++i)
    if (!subject.errors[i].empty())
      worst[std::string(subject.errors[i])] = to_json(verdict.worst()[i], subject.one);
  return {{subject.many, verdict.all()},
          {"passed", verdict.count(Status::ok)},
          {"failed", verdict.failed()},
          {"status", status},
          {"worst", worst}};
}

Json listed_json(const Verdict& verdict) {
  Json list = Json::array();
  for (const Judged& each : verdict.listed()) {
    list.push_back({{"matrix", each.at}, {"status", name_of(each.status)}});
    for (std::size_t i = 0; i < each.errors.size(); ++i)
      list.back()[std::string(verdict.subject().errors[i])] = to_json(each.errors[i], "");
  }
  return list;
}

}  // namespace qrtool

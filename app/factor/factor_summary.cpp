// SPDX-License-Identifier: Apache-2.0
// factor_summary.cpp: the result of `qrtool factor` in words and as JSON.
#include "app/factor/factor_summary.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "app/run/verdict/verdict_text.hpp"
#include "core/join.hpp"
#include "core/measure/gram_probe.hpp"
#include "core/text.hpp"
#include "io/file/text_output.hpp"
#include "io/open/formats.hpp"

namespace qrtool {
namespace {

using Json = nlohmann::ordered_json;

/// Returns the stored shape of a dataset: the leading dimensions, then those of a matrix.
std::vector<index_t> shape_of(const MatrixDataset& dataset, std::span<const index_t> leading) {
  std::vector<index_t> shape(leading.begin(), leading.end());
  if (!dataset.is_vector) shape.push_back(dataset.rows);
  shape.push_back(dataset.cols);
  return shape;
}

/// Returns "/Q", the member "Q" of an archive, or "/Q/NAME" in a file of several datasets.
std::string path_of(std::string_view dataset, const FactorResult& result) {
  if (!result.name.empty()) return fmt::format("/{}/{}", dataset, escape(result.name));
  // Ranks that write nothing have no files.
  const bool is_named = !result.files.empty() && !is_standard_output(result.files.front());
  return fmt::format("{}{}", is_named ? format_of_output(result.files.front()).before_dataset : "/",
                     dataset);
}

/// Returns the one file with the shapes of its datasets, or all files.
std::string written_places(const FactorResult& result) {
  const std::string files = written_files(result.files, "R");
  if (result.files.size() != 1 || is_standard_output(result.files.front())) return files;
  std::string datasets;
  for (const MatrixDataset& dataset : result.datasets)
    datasets += fmt::format("{} {}, ", path_of(dataset.name, result),
                            join(shape_of(dataset, result.source.leading), "x"));
  return fmt::format("{} ({}{})", files, datasets,
                     result.name.empty() ? format_of_output(result.files.front()).report_place
                                         : path_of("report", result));
}

std::string rate(std::size_t bytes_per_matrix, index_t count, double seconds) {
  if (seconds <= 0) return {};
  const double bytes = static_cast<double>(bytes_per_matrix) * static_cast<double>(count);
  const double speed = bytes / seconds / 1e6;
  return fmt::format(" ({:.{}f} MB/s)", speed, speed < 9.95 ? 1 : 0);
}

std::string variant_text(const FactorResult& result) {
  const std::string way = way_text(result);
  return std::string(result.plan.variant->name) + (way.empty() ? "" : ", " + way);
}

/// Says which of the published bars, m 2^-23, the factors meet although the products were made in
/// half precision.
std::string published_bars(const FactorResult& result) {
  const double bar = m_eps_bars(result.plan.problem.m).residual;
  const auto one = [bar](std::string_view name, double worst) {
    return fmt::format("{} {}", name, worst <= bar ? "holds" : "does not hold");
  };
  return fmt::format("mixed precision, bars of 2^-10; the published m 2^-23 = {:.2g}: {}, {}\n",
                     bar, one("residual", result.verdict.worst()[0].error),
                     one("orthogonality", result.verdict.worst()[1].error));
}

/// Returns "rank 64 of all", or "rank below 64 of 3 of 1,000, the least 12 (matrix 7)", and the
/// worst condition.
std::string rank_text(const FactorResult& result) {
  const RankSummary& ranks = result.verdict.ranks;
  const index_t k = result.plan.problem.k();
  std::string text;
  if (ranks.deficient > 0)
    text += fmt::format("rank below {} of {} of {}, the least {} (matrix {})\n", k,
                        format_count(ranks.deficient), format_count(ranks.with_rank), ranks.least,
                        result.verdict.name_of(ranks.least_matrix));
  else if (ranks.with_rank > 0)
    text += fmt::format("rank {}{}\n", k, ranks.with_rank > 1 ? " of all" : "");
  if (ranks.worst_matrix >= 0)
    text += fmt::format("largest condition number {} (matrix {})\n",
                        std::isinf(ranks.worst_condition)
                            ? "infinite"
                            : fmt::format("about {:.2g}", ranks.worst_condition),
                        result.verdict.name_of(ranks.worst_matrix));
  return text;
}

/// Returns null if the value is not known.
Json json_of(bool is_known, auto value) { return is_known ? Json(value) : Json(); }

Json rank_json(const FactorResult& result) {
  const RankSummary& ranks = result.verdict.ranks;
  if (!result.plan.problem.pivots) return nullptr;
  return {{"full", result.plan.problem.k()},
          {"deficient", ranks.deficient},
          {"least", json_of(ranks.least >= 0, ranks.least)},
          {"matrix", json_of(ranks.least >= 0, ranks.least_matrix)}};
}

Json condition_json(const FactorResult& result) {
  const RankSummary& ranks = result.verdict.ranks;
  if (!result.plan.problem.wants_condition) return nullptr;
  return {{"largest", json_of(ranks.worst_matrix >= 0, ranks.worst_condition)},
          {"matrix", json_of(ranks.worst_matrix >= 0, ranks.worst_matrix)}};
}

WallTime seconds_of(const FactorResult& result) {
  const Problem& problem = result.plan.problem;
  const StageSeconds& stages = result.times.stages;
  const ChunkSeconds& c = result.chunks;
  return wall_time(result.times,
                   {{"kernels", c.kernels},
                    {"upload", c.upload},
                    {"factor", c.factor},
                    {"check", c.check},
                    {"download", c.download}},
                   rate(problem.input_bytes(), problem.count, stages.read),
                   rate(problem.output_bytes(), problem.count, stages.write));
}

}  // namespace

std::string way_text(const FactorResult& result) {
  const RouteCounts& routes = result.verdict.routes;
  const index_t slow = routes.reflectors + routes.second_try;
  const index_t fast = routes.first_pass + routes.second_pass + routes.further_passes;
  const index_t all = routes.only + fast + slow;
  // A variant with one route alone says by its name how it went.
  if (routes.only > 0) return "";
  std::string text;
  for (const auto& [count, way] :
       {std::pair(routes.further_passes, "in further passes"), std::pair(slow, "by reflectors")}) {
    if (count == all && all > 0) return fmt::format("all {} {}", format_count(all), way);
    if (count == 0) continue;
    text += fmt::format("{}{} of {} {}", text.empty() ? "" : ", ", format_count(count),
                        format_count(all), way);
  }
  return text;
}

namespace {

/// Returns the printed summary of a run without its last line, which every run ends with.
std::string summary(const FactorResult& result, bool verbose) {
  const Plan& plan = result.plan;
  const Problem& problem = plan.problem;
  std::string text = result.name.empty() ? "" : escape(result.source.dataset) + ": ";
  text += fmt::format("factored {} of {}x{} ({}, {}, sign {}) on {} ({}, {} thread{})\n",
                      format_count(problem.count), problem.m, problem.n, name_of(problem.type),
                      name_of(problem.mode), name_of(problem.sign), result.shown_device,
                      variant_text(result), plan.all_threads(), plan.all_threads() == 1 ? "" : "s");
  if (const std::string worst = worst_line(result.verdict); !worst.empty()) text += worst + "\n";
  text += rank_text(result);
  if (verbose && result.verdict.routes.has_choice())
    text += fmt::format("routes: {}\n", route_text(result.verdict.routes));
  text += second_try_line(result.verdict);
  if (problem.arithmetic == Arithmetic::mixed) text += published_bars(result);
  if (problem.check == Check::probe) text += estimates_line;
  if (problem.check == Check::none)
    text += "unchecked: no error was measured; qrtool verify measures them\n";
  if (problem.mode == Mode::r && problem.check != Check::none) {
    const index_t vectors = gram_probe_vectors(problem.type);
    const bool is_estimate = plan.by_rows() && problem.n > vectors;
    text += r_alone_line(is_estimate ? fmt::format(", estimated with {} vectors", vectors) : "");
  }
  if (verbose) text += text_of(seconds_of(result)) + "\n";
  return text;
}

/// Returns the document, of schema qrtool.factor/1.
Json to_json(const FactorResult& result) {
  const Plan& plan = result.plan;
  const Problem& problem = plan.problem;
  const Source& source = result.source;
  Json datasets = Json::array(), details = Json::object(), input = input_json(source);
  for (const auto& [name, word] : source.details) details[name] = word;
  input.update({{"order", name_of(source.order)}, {"read_as", details}, {"notes", source.notes}});
  Json check{{"kind", name_of(problem.check)}};
  check.update(to_json(result.verdict));
  for (const MatrixDataset& dataset : result.datasets)
    datasets.push_back({{"name", path_of(dataset.name, result)},
                        {"shape", shape_of(dataset, source.leading)},
                        {"type", dataset.is_whole ? "int32" : name_of(dataset.type)}});
  return {{"schema", "qrtool.factor/1"},
          {"version", QRTOOL_VERSION},
          {"input", input},
          {"output",
           {{"files", result.files},
            {"datasets", datasets},
            {"mode", name_of(problem.mode)},
            {"sign", name_of(problem.sign)},
            {"precision", precision_name(problem)},
            {"pivoted", problem.pivots}}},
          {"backend",
           {{"name", result.backend},
            {"device", result.device},
            {"variant", plan.variant->name},
            {"way", way_text(result)},
            {"arithmetic", plan.arithmetic()}}},
          {"plan",
           {{"reason", plan.reason},
            {"chunk_matrices", plan.chunk_matrices},
            {"buffers", plan.buffers},
            {"threads", plan.all_threads()},
            {"host_bytes", plan.host_bytes},
            {"device_bytes", plan.device_bytes}}},
          {"seconds", to_json(seconds_of(result))},
          {"ranks", result.ranks},
          {"check", check},
          {"rank", rank_json(result)},
          {"condition", condition_json(result)},
          {"first_failures", listed_json(result.verdict)},
          {"routes", to_json(result.verdict.routes)},
          {"unit_roundoff", precision_of(problem).u},
          {"exit", result.is_good() ? 0 : 1}};
}

std::vector<Complaint> complaints_of(const FactorResult& result) {
  const Problem& problem = result.plan.problem;
  const bool is_single = real_of(problem.type) == ElementType::float32;
  const std::string range =
      fmt::format("an R that exceeds the {} range", is_single ? "float32" : "float64");
  const char* const range_hint =
      is_single ? "use --precision double" : "divide the matrices by a power of two";
  std::vector<Complaint> all = complaints_of(
      result.verdict, result.source.file,
      {{Status::non_finite, "contains NaN or Inf", "contain NaN or Inf",
        problem.mode == Mode::r     ? "; their R is NaN"
        : problem.mode == Mode::raw ? "; their V and tau are NaN"
                                    : "; their Q and R are NaN"},
       {Status::r_overflows, "has " + range, "have " + range, "", range_hint},
       {Status::above_bar, "misses the bar", "miss the bar", "; see status 1 in the report"}});
  complain_of_leverages(result.source.file, result.wrong_leverages, all);
  return all;
}

}  // namespace

Outcome outcome_of(const FactorOptions& o, const FactorResult& result) {
  Outcome outcome{
      .code = result.is_good() ? ExitCode::good : ExitCode::answer_is_no,
      .complaints = complaints_of(result),
      .text = summary(result, o.verbose) +
              fmt::format("{}; wrote {}\n", verdict_line(result.verdict), written_places(result)),
      .line = fmt::format("{}; wrote {}\n", verdict_line(result.verdict),
                          written_files(result.files, "R"))};
  if (o.json) outcome.json = to_json(result);
  return outcome;
}

}  // namespace qrtool

// SPDX-License-Identifier: Apache-2.0
// factor_summary.cpp: the result of `qrtool factor` in words and as JSON.
#include "app/factor/factor_summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "app/process/console.hpp"
#include "app/run/verdict/verdict_text.hpp"
#include "core/join.hpp"
#include "core/measure/gram_probe.hpp"
#include "core/text.hpp"
#include "io/file/text_output.hpp"
#include "io/open/formats.hpp"

namespace qrtool {
namespace {

using Json = nlohmann::ordered_json;

/// The stored shape of a dataset: the leading dimensions, then those of a matrix.
std::vector<index_t> shape_of(const MatrixDataset& dataset, std::span<const index_t> leading) {
  std::vector<index_t> shape(leading.begin(), leading.end());
  if (!dataset.is_vector) shape.push_back(dataset.rows);
  shape.push_back(dataset.cols);
  return shape;
}

bool is_one_file(const FactorResult& result) { return result.files.size() == 1; }

/// "/Q", the member "Q" of an archive, or "/Q/NAME" in a file of several datasets.
std::string path_of(std::string_view dataset, const FactorResult& result) {
  if (!result.name.empty()) return fmt::format("/{}/{}", dataset, escape(result.name));
  // Ranks that write nothing have no files.
  const bool is_named = !result.files.empty() && !is_standard_output(result.files.front());
  return fmt::format("{}{}", is_named ? format_of_output(result.files.front()).before_dataset : "/",
                     dataset);
}

std::string names_of_files(const FactorResult& result) {
  std::vector<std::string> names;
  for (const std::string& file : result.files) names.push_back(escape(file));
  return join(names, ", ");
}

std::string written_files(const FactorResult& result) {
  if (is_one_file(result) && is_standard_output(result.files.front()))
    return "R to standard output";
  if (!is_one_file(result)) return names_of_files(result);
  const std::string report = result.name.empty()
                                 ? std::string(format_of_output(result.files.front()).report_place)
                                 : path_of("report", result);
  std::string datasets;
  for (const MatrixDataset& dataset : result.datasets)
    datasets += fmt::format("{} {}, ", path_of(dataset.name, result),
                            join(shape_of(dataset, result.source.leading), "x"));
  return fmt::format("{} ({}{})", escape(result.files.front()), datasets, report);
}

std::string verdict_line(const Verdict& verdict) {
  const index_t passed = verdict.count(Status::ok);
  if (passed == 1 && verdict.matrices() == 1) return "the matrix passes";
  const index_t unchecked = verdict.count(Status::unchecked);
  if (unchecked == 1 && verdict.matrices() == 1) return "the matrix is unchecked";
  if (unchecked == verdict.matrices() && unchecked > 0)
    return fmt::format("all {} unchecked", format_count(unchecked));
  const NamedCount others[] = {{verdict.count(Status::above_bar), "above the bar"},
                               {verdict.count(Status::non_finite), "not finite"},
                               {verdict.count(Status::r_overflows), "overflow in R"},
                               {unchecked, "unchecked"}};
  return passed_text(passed, verdict.matrices(), others);
}

/// The verdict and what was written.
std::string last_line(const FactorResult& result, const std::string& written) {
  const std::string verdict = verdict_line(result.verdict);
  return fmt::format("{}; wrote {}\n", result.verdict.failed() > 0 ? in_red(verdict) : verdict,
                     written);
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
                     bar, one("residual", result.verdict.residual().error),
                     one("orthogonality", result.verdict.orthogonality().error));
}

/// "rank: all 64" or "rank: 3 of 1,000 below 64, the least 12 (matrix 7)", and the worst condition.
std::string rank_text(const FactorResult& result) {
  const RankSummary& ranks = result.verdict.ranks();
  const Problem& problem = result.plan.problem;
  const auto name = [&](index_t matrix) { return matrix_name(result.source.leading, matrix); };
  std::string text;
  if (ranks.matrices > 0)
    text += ranks.deficient == 0
                ? fmt::format("rank {}{}\n", problem.k(), ranks.matrices > 1 ? " of all" : "")
                : fmt::format("rank below {} of {} of {}, the least {} (matrix {})\n", problem.k(),
                              format_count(ranks.deficient), format_count(ranks.matrices),
                              ranks.least, name(ranks.least_matrix));
  if (ranks.worst_matrix >= 0)
    text += fmt::format("largest condition number {} (matrix {})\n",
                        std::isinf(ranks.worst_condition)
                            ? "infinite"
                            : fmt::format("about {:.2g}", ranks.worst_condition),
                        name(ranks.worst_matrix));
  return text;
}

Json rank_json(const FactorResult& result) {
  const RankSummary& ranks = result.verdict.ranks();
  if (!result.plan.problem.pivots) return nullptr;
  const bool is_known = ranks.matrices > 0;
  return {{"full", result.plan.problem.k()},
          {"deficient", ranks.deficient},
          {"least", is_known ? Json(ranks.least) : Json()},
          {"matrix", is_known ? Json(ranks.least_matrix) : Json()}};
}

Json condition_json(const FactorResult& result) {
  const RankSummary& ranks = result.verdict.ranks();
  if (!result.plan.problem.wants_condition) return nullptr;
  const bool is_known = ranks.worst_matrix >= 0;
  return {{"largest", is_known ? Json(ranks.worst_condition) : Json()},
          {"matrix", is_known ? Json(ranks.worst_matrix) : Json()}};
}

}  // namespace

std::string way_text(const FactorResult& result) {
  const RouteCounts& routes = result.verdict.routes();
  const index_t slow = routes.reflectors + routes.second_try;
  const index_t fast = routes.first_pass + routes.second_pass + routes.further_passes;
  const index_t all = routes.only + fast + slow;
  // A variant with one route alone says by its name how it went.
  if (routes.only > 0) return "";
  std::string text;
  for (const auto& [count, way] :
       {NamedCount{routes.further_passes, "in further passes"}, {slow, "by reflectors"}}) {
    if (count == all && all > 0) return fmt::format("all {} {}", format_count(all), way);
    if (count == 0) continue;
    text += fmt::format("{}{} of {} {}", text.empty() ? "" : ", ", format_count(count),
                        format_count(all), way);
  }
  return text;
}

WallTime seconds_of(const FactorResult& result) {
  const Problem& problem = result.plan.problem;
  const StageSeconds& stages = result.stages;
  const ChunkSeconds& c = result.chunks;
  const double measured = c.kernels + c.upload + c.factor + c.check + c.download;
  return {
      .columns = {{"start", result.start_seconds},
                  {"read", stages.read, rate(problem.input_bytes(), problem.count, stages.read)},
                  {"kernels", c.kernels},
                  {"upload", c.upload},
                  {"factor", c.factor},
                  {"check", c.check},
                  {"download", c.download},
                  {"other", std::max(0.0, stages.work - measured)},
                  {"write", stages.write,
                   rate(problem.output_bytes(), problem.count, stages.write)},
                  {"leverage", result.leverage_seconds},
                  {"sync", result.sync_seconds},
                  {"free", stages.free + result.free_seconds}},
      .overlap = stages.overlap + std::max(0.0, measured - stages.work),
      .total = result.total_seconds};
}

std::string summary(const FactorResult& result, bool verbose) {
  const Plan& plan = result.plan;
  const Problem& problem = plan.problem;
  std::string text = result.name.empty() ? "" : escape(result.source.dataset) + ": ";
  text += fmt::format("factored {} of {}x{} ({}, {}, sign {}) on {} ({}, {} thread{})\n",
                      format_count(problem.count), problem.m, problem.n, name_of(problem.type),
                      name_of(problem.mode), name_of(problem.sign), result.shown_device,
                      variant_text(result), plan.all_threads(), plan.all_threads() == 1 ? "" : "s");
  if (const std::string worst = worst_line(result.verdict, result.source.leading); !worst.empty())
    text += worst + "\n";
  text += rank_text(result);
  if (verbose && result.verdict.routes().has_choice())
    text += fmt::format("routes: {}\n", route_text(result.verdict.routes()));
  if (const index_t again = result.verdict.routes().second_try; again > 0)
    text += fmt::format("{} above {} bar at first, and factored again by reflectors\n",
                        again == 1 ? "1 matrix was" : format_count(again) + " matrices were",
                        again == 1 ? "its" : "their");
  if (problem.arithmetic == Arithmetic::mixed) text += published_bars(result);
  if (problem.check == Check::probe)
    text += "these errors are estimates, except those of matrices close to a bar\n";
  if (problem.check == Check::none)
    text += "unchecked: no error was measured; qrtool verify measures them\n";
  if (problem.mode == Mode::r && problem.check != Check::none) {
    const index_t vectors = gram_probe_vectors(problem.type);
    const bool is_estimate = plan.by_rows() && problem.n > vectors;
    text += fmt::format(
        "R alone: the residual is ||A'A - R'R|| / ||A||^2{}, a weaker check\n",
        is_estimate ? fmt::format(", estimated with {} vectors", vectors) : std::string());
  }
  if (verbose) text += text_of(seconds_of(result)) + "\n";
  return text + last_line(result, written_files(result));
}

std::string short_summary(const FactorResult& result) {
  return last_line(result, names_of_files(result));
}

Json to_json(const FactorResult& result) {
  const Plan& plan = result.plan;
  const Problem& problem = plan.problem;
  const Source& source = result.source;
  std::vector<index_t> shape = source.leading;
  shape.insert(shape.end(), {source.m, source.n});
  Json datasets = Json::array(), details = Json::object();
  for (const auto& [name, word] : source.details) details[name] = word;
  for (const MatrixDataset& dataset : result.datasets)
    datasets.push_back({{"name", path_of(dataset.name, result)},
                        {"shape", shape_of(dataset, source.leading)},
                        {"type", dataset.is_whole ? "int32" : name_of(dataset.type)}});
  return {{"schema", "qrtool.factor/1"},
          {"version", QRTOOL_VERSION},
          {"input",
           {{"file", source.file},
            {"dataset", source.dataset},
            {"shape", shape},
            {"type", source.stored_type},
            {"order", name_of(source.order)},
            {"read_as", details},
            {"notes", source.notes}}},
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
          {"check", to_json(result.verdict, problem.check)},
          {"rank", rank_json(result)},
          {"condition", condition_json(result)},
          {"first_failures", to_json(result.verdict.failures(), result.verdict.has_q())},
          {"routes", to_json(result.verdict.routes())},
          {"unit_roundoff", precision_of(problem).u},
          {"exit", result.is_good() ? 0 : 1}};
}

void print_result(const FactorOptions& o, const FactorResult& result) {
  if (result.plan.problem.count == 0)
    print_message(fmt::format("{}: 0 matrices", escape(result.source.file)));
  print_bad_matrices(result);
  if (o.json) {
    write_json(to_json(result));
  } else if (!o.quiet) {
    write_stdout(summary(result, o.verbose));
  }
}

void print_bad_matrices(const FactorResult& result) {
  if (result.wrong_leverages > 0)
    print_failure(fmt::format("{}: the leverages of {} matri{} miss their bar",
                              escape(result.source.file), format_count(result.wrong_leverages),
                              result.wrong_leverages == 1 ? "x" : "ces"));
  const Verdict& verdict = result.verdict;
  const std::string file = escape(result.source.file);
  const std::string matrices = fmt::format("{} {}", format_count(verdict.matrices()),
                                           verdict.matrices() == 1 ? "matrix" : "matrices");
  // What is said of one matrix, and of several.
  struct Fault {
    const char *of_one, *of_more;
  };
  const auto say = [&](Status status, Fault fault, const char* consequence) {
    if (verdict.count(status) == 0) return false;
    const char* what = verdict.count(status) == 1 ? fault.of_one : fault.of_more;
    print_failure(fmt::format(
        "{}: {} of {} {} (first: {}){}", file, format_count(verdict.count(status)), matrices, what,
        matrix_name(result.source.leading, verdict.first(status)), consequence));
    return true;
  };
  const Mode mode = result.plan.problem.mode;
  say(Status::non_finite, {"contains NaN or Inf", "contain NaN or Inf"},
      mode == Mode::r     ? "; their R is NaN"
      : mode == Mode::raw ? "; their V and tau are NaN"
                          : "; their Q and R are NaN");
  const bool single = real_of(result.plan.problem.type) == ElementType::float32;
  if (say(Status::r_overflows,
          single ? Fault{"has an R that exceeds the float32 range",
                         "have an R that exceeds the float32 range"}
                 : Fault{"has an R that exceeds the float64 range",
                         "have an R that exceeds the float64 range"},
          ""))
    print_hint(single ? "use --precision double" : "divide the matrices by a power of two");
  say(Status::above_bar, {"misses the bar", "miss the bar"}, "; see status 1 in the report");
}

}  // namespace qrtool

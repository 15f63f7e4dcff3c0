// SPDX-License-Identifier: Apache-2.0
// describe_bench.cpp: the options of `qrtool bench` with their texts, and what they refuse.
#include "app/cli/describe_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "app/bench/contestants/baselines.hpp"
#include "app/cli/command_line.hpp"
#include "app/cli/option_values.hpp"
#include "core/error.hpp"
#include "core/join.hpp"
#include "core/matrix/matrices.hpp"
#include "core/text.hpp"

namespace qrtool {
namespace {

constexpr std::pair<std::string_view, ElementType> bench_types[] = {
    {"single", ElementType::float32}, {"double", ElementType::float64}};
constexpr std::pair<std::string_view, SweepKind> sweeps[] = {
    {"standard", SweepKind::standard}, {"tall", SweepKind::tall}, {"shapes", SweepKind::shapes}};
constexpr std::pair<std::string_view, Arithmetic> bench_arithmetics[] = {
    {"any", Arithmetic::any}, {"strict", Arithmetic::strict}, {"mixed", Arithmetic::mixed}};
constexpr std::pair<std::string_view, Mode> bench_modes[] = {
    {"reduced", Mode::reduced}, {"r", Mode::r}, {"raw", Mode::raw}};
constexpr std::pair<std::string_view, std::optional<Sign>> bench_signs[] = {
    {"positive", Sign::positive}, {"lapack", Sign::lapack}};

/// The most elements of a case. A larger number is taken for a typing mistake.
constexpr double most_elements = 0x1p50;

std::vector<std::pair<index_t, index_t>> parse_shapes(const std::string& text) {
  std::vector<std::pair<index_t, index_t>> shapes;
  for (const std::string& word : split(text, ',')) {
    const Shape shape = parse_shape("--shape", word,
                                    "allowed is MxN, for example 64x32; --batch 1000 measures 1000 "
                                    "matrices of it");
    if (!shape.leading.empty())
      throw UsageError(
          fmt::format("--shape: '{}' is not MxN", word),
          fmt::format("--shape {}x{} --batch {}", shape.m, shape.n, join(shape.leading, "x")));
    if (shape.m == 0 || shape.n == 0)
      throw UsageError(fmt::format("--shape: '{}' leaves nothing to measure", word));
    shapes.emplace_back(shape.m, shape.n);
  }
  return shapes;
}

std::vector<index_t> parse_batches(const std::string& text) {
  std::vector<index_t> batches;
  for (const std::string& word : split(text, ','))
    batches.push_back(parse_whole("--batch", word, 1, 1'000'000'000));
  return batches;
}

/// In --against, this word means all variants of the backend.
constexpr std::string_view all_variants = "variants";

/// Returns the baseline of this name. Errors: UsageError with all names.
const Baseline* parse_baseline(std::string_view name) {
  if (const Baseline* baseline = find_baseline(name)) return baseline;
  std::vector<std::string_view> names;
  for (const Baseline& baseline : baselines()) names.push_back(baseline.name);
  names.push_back(all_variants);
  names.push_back("none");
  throw not_one_of("--against", name, names);
}

/// Returns the kinds of matrices, as `generate` makes them.
std::vector<std::string_view> kinds() {
  std::vector<std::string_view> names;
  for (const MatrixKind& kind : matrix_kinds()) names.push_back(kind.name);
  return names;
}

/// Names, each of one kind or of several joined by "+". Errors: UsageError with all names.
std::vector<std::string> parse_kinds(const std::string& text) {
  const std::vector<std::string_view> names = kinds();
  std::vector<std::string> words = split(text, ',');
  for (const std::string& word : words)
    for (const std::string& name : split(word, '+'))
      if (std::ranges::find(names, name) == names.end()) throw not_one_of("--kind", name, names);
  return words;
}

void parse_baselines(const std::string& text, BenchOptions& o) {
  std::vector<const Baseline*>& against = o.against.emplace();
  const std::vector<std::string> words = split(text, ',');
  if (words.size() > 1 && std::find(words.begin(), words.end(), "none") != words.end())
    throw UsageError(fmt::format("--against {}: none stands alone", escape(text)),
                     "leave none away, or the others");
  for (const std::string& word : words) {
    if (word == all_variants) o.against_variants = true;
    if (word == "none" || word == all_variants) continue;
    const Baseline* baseline = parse_baseline(word);
    if (std::find(against.begin(), against.end(), baseline) == against.end())
      against.push_back(baseline);
  }
}

/// Checks the options that --portable, --first-run, --tolerance and the measurements beside the
/// table need.
void check_surroundings(const BenchOptions& o) {
  if ((o.backend.portable || o.first_run) && !o.backend.asks_for_device())
    throw UsageError("--portable and --first-run need --backend opencl, --backend gpu or --device");
  if (o.first_run && (o.solve || o.sweep || o.shapes.size() != 1 || o.batches.size() > 1 ||
                      o.kinds.size() > 1 || o.seeds > 1))
    throw UsageError(
        "--first-run measures one case, since the next would find kernels built: one --shape, with "
        "one --batch");
  if (o.tolerance && o.compare.empty()) throw UsageError("--tolerance needs --compare");
  if ((o.gemm || !o.rates.empty()) &&
      (o.seeds > 1 || o.runs || o.cold || o.first_run || !o.compare.empty()))
    throw UsageError(
        "--gemm and --rates take no --seeds, --runs, --cold, --first-run or --compare");
}

/// Refuses options that exist only for real matrices.
void refuse_complex(const BenchOptions& o) {
  const std::pair<bool, std::string_view> real_only[] = {
      {o.gemm, "--gemm"},
      {o.weighed, "--weights"},
      {o.arithmetic == Arithmetic::mixed, "--arithmetic mixed"}};
  for (const auto& [is_given, option] : real_only)
    if (is_given)
      throw UsageError(fmt::format("bench {} is for real matrices", option),
                       fmt::format("leave {} or --complex away", option));
  std::vector<std::string_view> names;
  for (const Baseline& baseline : baselines())
    if (baseline.takes_complex && baseline.solves == o.solve) names.push_back(baseline.name);
  for (const Baseline* baseline : baselines_of(o))
    if (!baseline->takes_complex && baseline->solves == o.solve)
      throw UsageError(fmt::format("--against {}: it takes no complex matrices", baseline->name),
                       fmt::format("with --complex: {}, variants, none", join(names, ", ")));
}

void describe_comparison(CommandLine& line, BenchOptions& o) {
  line.value("--compare", "FILE",
             "the JSON of an earlier run: exit 1 where a case has become slower by its median",
             [&o](const std::string& text) { o.compare = text; });
  line.value("--tolerance", "X",
             "of --compare: the part by which a case may be slower; default 0.1",
             [&o](const std::string& text) { o.tolerance = parse_number("--tolerance", text, 0); });
}

}  // namespace

constexpr std::string_view bench_about =
    R"(Times the tool against others on matrices made here, and prints a table. Device
times are by the device's clock with the data resident; the check has a column
of its own. Without --sweep and --shape it is --quick.

  qrtool bench --sweep --export-markdown table.md
  qrtool bench --shape 64x64,128x64 --batch 1000,15000 --against eigen,lapack
  qrtool bench --solve --shape 288x97 --batch 1000 --against gels,gelsy
)";

void describe_cases(CommandLine& line, BenchOptions& o) {
  line.optional_value(
      "--sweep", "[WORD]", "standard",
      "standard, the published table: 64x64 to 512x256 in batches of 100 to 15000, 512x512 to "
      "5000x5000 in batches of 1 to 32; tall: 1600 rows of 2 to 32 columns, 4 to 16384 rows of "
      "2 and 4, 100000x16 to 4000000x64; or shapes: square, tall and wide ones, where variants "
      "change",
      [&o](const std::string& text) {
        o.sweep_kind = choose("--sweep", text, sweeps);
        o.sweep = true;
      });
  line.flag("--quick", o.quick, "a part of it, fewer repeats; ends within a minute");
  line.flag("--gemm", o.gemm,
            "the matrix products behind opencl/large instead, every body, beside the peak of its "
            "instruction");
  line.optional_value(
      "--rates", "[FILE]", std::string(own_table),
      "measure every variant on some 400 shapes instead, and write the table of times by which a "
      "plan chooses: own, the table that later runs of yours on this device use, or a file, which "
      "--shape or --variant limit; a table that was begun is gone on with",
      [&o](const std::string& text) { o.rates = text; });
  line.flag(
      "--solve", o.solve,
      "least squares instead, one right side for each matrix, as solve solves and checks them");
  line.flag("--shared", o.shared,
            "with --solve: one matrix for all right sides, which --batch counts then");
  line.flag("--weights", o.weighed,
            "with --solve --shared: each right side has weights of its own; against nothing");
  line.value("--ridge", "X",
             "with --solve: minimise ||A x - b||^2 + X ||x||^2, as solve does; default 0",
             [&o](const std::string& text) { o.ridge = parse_number("--ridge", text, 0); });
  line.list("--shape", "MxN,...", "your own cases: rows and columns; may be repeated",
            [&o](const std::string& text) { o.shapes = parse_shapes(text); });
  line.list("--batch", "N,...", "how many matrices of each --shape; default 1",
            [&o](const std::string& text) { o.batches = parse_batches(text); });
  line.choice("--precision", o.type, "of the elements", bench_types);
  line.flag("--complex", o.is_complex,
            "complex numbers, whose parts have that precision, of the kinds of generate --complex");
  line.choice("--arithmetic", o.arithmetic,
              "of float32: any that has its accuracy, strict: its own alone, mixed: half-precision "
              "products",
              bench_arithmetics);
  line.choice("--mode", o.mode, "what is computed", bench_modes);
  line.choice("--sign", o.sign, "of the diagonal of R; in mode raw LAPACK's", bench_signs);
  line.list("--kind", "NAME,...",
            fmt::format("default gauss; {}; each is a case of its own; gauss+band: the matrices of "
                        "a batch take these in turn",
                        join(kinds(), ", ")),
            [&o](const std::string& text) { o.kinds = parse_kinds(text); });
  line.suggest("--kind", [] {
    std::vector<Candidate> names;
    for (const std::string_view name : kinds()) names.push_back({std::string(name)});
    return names;
  });
  line.list(
      "--against", "NAME,...",
      "default eigen; eigen, lapack, textbook, cpu (this tool on the CPU), from-host (the same "
      "backend with copies), none; variants: all of the backend's; with "
      "--solve gels (the default), gelsy, normal-equations, all by LAPACK",
      [&o](const std::string& text) { parse_baselines(text, o); });
  line.suggest("--against", [] {
    std::vector<Candidate> names;
    for (const Baseline& baseline : baselines()) names.push_back({std::string(baseline.name)});
    for (const char* word : {"none", "variants"}) names.push_back({word});
    return names;
  });
  line.suggest("--sweep", [] {
    std::vector<Candidate> names;
    for (const auto& [name, kind] : sweeps) names.push_back({std::string(name)});
    return names;
  });
  line.value("--limit-seconds", "X",
             "running time of one cell of the table at most: fewer repeats, then left out; default "
             "60, with --quick 5",
             [&o](const std::string& text) {
               o.limit_seconds = parse_number("--limit-seconds", text, 1e-3);
             });
  line.value("--seed", "N", "default 0", [&o](const std::string& text) {
    o.seed = static_cast<std::uint64_t>(
        parse_whole("--seed", text, 0, std::numeric_limits<std::int64_t>::max()));
  });
  line.value(
      "--seeds", "N",
      "batches of each case, from this seed on; the time is the median of their medians, and "
      "the worst is printed too; default 1",
      [&o](const std::string& text) {
        o.seeds = static_cast<int>(parse_whole("--seeds", text, 1, 1000));
      });
  line.value(
      "--runs", "N",
      "timed runs of each batch, as long as --limit-seconds lasts; default 5, and more until "
      "their median is precise",
      [&o](const std::string& text) {
        o.runs = static_cast<int>(parse_whole("--runs", text, 1, 1'000'000));
      });
  line.flag("--cold", o.cold, "empty the caches of the device, or of the CPU, before each run");
  line.flag("--portable", o.backend.portable,
            "only the kernels that run on any OpenCL device, on one that was asked for");
  line.flag("--first-run", o.first_run,
            "also the first run of one case, which builds its kernels: the driver's cache of "
            "kernels is an empty folder");
}

void describe_exports(CommandLine& line, BenchOptions& o) {
  describe_comparison(line, o);
  const std::pair<const char*, std::string*> files[] = {{"--export-json", &o.export_json},
                                                        {"--export-csv", &o.export_csv},
                                                        {"--export-markdown", &o.export_markdown},
                                                        {"--export-html", &o.export_html}};
  for (const auto& [name, path] : files)
    line.value(name, "FILE", "the table so far, rewritten after every case",
               [target = path](const std::string& text) { *target = text; });
  line.value("--plot", "FILE",
             "draw the times and the speed-ups, as FILE.svg or FILE.png, with gnuplot",
             [&o](const std::string& text) { o.plot = text; });
  line.flag("-f,--force", o.force, "replace existing files");
}

void check(const BenchOptions& o) {
  if (o.sweep && !o.shapes.empty())
    throw UsageError("--sweep contradicts --shape", "leave one of them away");
  if (o.gemm && (o.sweep || o.quick || !o.shapes.empty() || o.backend.name == "cpu"))
    throw UsageError("--gemm measures products on an OpenCL device and no factorizations",
                     "leave --sweep, --quick, --shape and --backend cpu away");
  if (!o.rates.empty() &&
      (o.sweep || o.quick || o.gemm || o.solve || o.against || o.is_complex || !o.batches.empty()))
    throw UsageError("--rates measures all variants of a backend, one matrix and many",
                     "beside it go --shape, --backend, --variant, --device and --seed only");
  if (o.shared && !o.solve)
    throw UsageError("--shared needs --solve", "for example --solve --shared --shape 120x4");
  if (o.ridge && !o.solve)
    throw UsageError("--ridge needs --solve", "for example --solve --ridge 0.1 --shape 97x288");
  if (o.weighed && !o.shared)
    throw UsageError("--weights needs --solve --shared",
                     "for example --solve --shared --weights --shape 288x97");
  if (o.weighed && o.against && !o.against->empty())
    throw UsageError("--weights is compared with nothing: LAPACK would need a matrix for each",
                     "leave --against away");
  const bool has_factors = o.mode != Mode::reduced || o.sign || o.kinds != BenchOptions{}.kinds ||
                           o.arithmetic != Arithmetic::any;
  if (o.solve && (o.gemm || has_factors))
    throw UsageError(
        "--solve measures solutions: it takes no --gemm, --mode, --sign, --kind or --arithmetic",
        "leave these away, or leave --solve away");
  check_surroundings(o);
  if (o.is_complex) refuse_complex(o);
  if (o.mode == Mode::raw && o.sign == Sign::positive)
    throw UsageError("--sign positive contradicts --mode raw, which has LAPACK's signs",
                     "--mode reduced or --mode r gives R positive ones");
  if (o.arithmetic == Arithmetic::mixed && o.type == ElementType::float64)
    throw UsageError("--arithmetic mixed contradicts --precision double",
                     "mixed multiplies in half precision; leave one of them away");
  for (const Baseline* baseline : baselines_of(o))
    if (baseline->solves != o.solve)
      throw UsageError(
          fmt::format("--against {}: {}", baseline->name,
                      o.solve ? "it computes factors" : "it solves least squares"),
          o.solve ? "with --solve: gels, gelsy, normal-equations, variants, none" : "--solve");
  if (!o.batches.empty() && o.shapes.empty())
    throw UsageError("--batch needs --shape", "for example --shape 64x64 --batch 100,1000");
  for (const auto& [m, n] : o.shapes)
    for (const index_t batch : o.batches)
      if (static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(batch) >
          most_elements)
        throw LimitError(
            fmt::format("--batch: {} of {}x{} is more than any memory holds", batch, m, n));
  if (o.gemm && (!o.plot.empty() || !o.export_html.empty()))
    throw UsageError("--gemm has no picture", "leave --plot and --export-html away");
  std::vector<std::string> files;
  for (const std::string& file :
       {o.export_json, o.export_csv, o.export_markdown, o.export_html, o.plot, o.rates}) {
    if (file == "-")
      throw UsageError("an export cannot be standard output", "--json prints the result there");
    if (!file.empty() && std::find(files.begin(), files.end(), file) != files.end())
      throw UsageError(fmt::format("two exports cannot both be '{}'", file));
    files.push_back(file);
  }
}

}  // namespace qrtool

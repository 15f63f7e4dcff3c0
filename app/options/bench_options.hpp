// SPDX-License-Identifier: Apache-2.0
// bench_options.hpp: the command line of `qrtool bench` as a struct.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/options/backend_request.hpp"
#include "app/options/print_options.hpp"
#include "core/matrix/matrices.hpp"
#include "core/problem/problem.hpp"

namespace qrtool {

struct Baseline;
/// Says which cases --sweep times. shapes: small and large, square, tall and wide, for the choice
/// among variants.
enum class SweepKind { standard, tall, shapes };

/// The word of --rates for the table of the user's own device (app/run/backends/timings_file.hpp).
inline constexpr std::string_view own_table = "own";

struct BenchOptions : PrintOptions {
  bool sweep = false, quick = false, gemm = false, solve = false, shared = false;
  bool weighed = false;         // with shared: each right side has weights of its own
  std::optional<double> ridge;  // with solve
  SweepKind sweep_kind = SweepKind::standard;
  std::vector<std::pair<index_t, index_t>> shapes;  // rows, columns
  std::vector<index_t> batches;                     // of each shape
  ElementType type = ElementType::float32;          // of the parts, with is_complex
  bool is_complex = false;
  Arithmetic arithmetic = Arithmetic::any;
  Mode mode = Mode::reduced;  // or r, or raw
  std::optional<Sign> sign;   // none: positive, and LAPACK's in mode raw
  std::vector<std::string> kinds{std::string(MatrixRequest{}.kind)};  // each in its own cases
  bool cold = false, first_run = false;
  BackendRequest backend;
  std::optional<std::vector<const Baseline*>> against;
  bool against_variants = false;
  std::optional<double> limit_seconds;
  std::optional<std::uint64_t> memory_bytes;
  int threads = 0;
  std::uint64_t seed = 0;
  int seeds = 1;
  std::optional<int> runs;  // timed ones of each batch; none: until their median is precise
  std::string compare;      // the JSON of an earlier run; empty: none
  std::optional<double> tolerance;
  std::string export_json, export_csv, export_markdown, export_html;
  std::string plot;   // FILE.svg or FILE.png
  std::string rates;  // the file of the table, or own_table; empty: no rates
  bool force = false;
};

}  // namespace qrtool

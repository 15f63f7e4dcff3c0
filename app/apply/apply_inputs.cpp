// SPDX-License-Identifier: Apache-2.0
// apply_inputs.cpp: opens the factors that a product needs, and finds the way to read B.
#include <fmt/format.h>

#include <algorithm>

#include "app/apply/apply_run.hpp"
#include "core/error.hpp"
#include "core/join.hpp"
#include "core/text.hpp"
#include "io/file/input_file.hpp"
#include "io/open/factors.hpp"
#include "io/open/input.hpp"

namespace qrtool {
namespace {

std::string shape_text(const Source& s) { return format_shape(s.leading, s.m, s.n); }

StoredFactors factors_in(const std::string& path, Order order, int threads) {
  const Location place = split_location(path);
  const std::vector<std::string> sources = recorded_datasets(place.file);
  if (sources.empty()) return open_factors(path, order, threads);
  for (const std::string& source : sources)
    if (name_in_output(source) == name_in_output(place.dataset))
      return open_factors(place.file, order, threads, source);
  const std::string file = escape(place.file);
  throw InputError(fmt::format("{}: holds the factors of {}", file, escape(join(sources, ", "))),
                   fmt::format("name one of them: {}:{}", file, escape(sources.front())));
}

StoredFactors open_given(const ApplyOptions& o, int threads) {
  try {
    return factors_in(o.factors, o.order, threads);
  } catch (const InputError& error) {
    try {
      factors_in(o.b, Order::row, 1);
    } catch (const Error&) {
      throw error;
    }
    throw InputError(error.what(),
                     fmt::format("the factors come first, then B: qrtool apply {} {} {}",
                                 escape(o.b), escape(o.factors), escape(o.output)));
  }
}

/// Returns the sizes of the product. Errors: InputError if it needs other factors.
ApplyProblem problem_of(Product product, const StoredFactors& f) {
  const bool has_q = uses_q(product), has_reflectors = f.v != nullptr;
  const std::string file = escape(f.file);
  if (has_q && !f.q && !f.v)
    throw InputError(
        fmt::format("{}: holds R alone, and --with {} needs Q", file, name_of(product)),
        "factor with --mode reduced, complete or raw; or give --with rinv or rinvt");
  const Source& s = (has_reflectors ? f.v : has_q ? f.q : f.r)->source();
  const std::string found =
      fmt::format("{}: {} is {}", file, has_reflectors ? "V" : "R", shape_text(s));
  if (!has_q && s.m < s.n)
    throw InputError(found + ": A has fewer rows than columns, and R has no inverse",
                     "qrtool solve A B OUT gives the x of least norm");
  if (!has_q && s.m > s.n && !has_reflectors)
    throw InputError(fmt::format("{}, as --mode complete gives it, and --with {} needs a square R",
                                 found, name_of(product)),
                     "factor with --mode reduced, r or raw");
  ApplyProblem p = ApplyProblem::of(product, s.m, s.n, has_reflectors);
  if (has_q && f.q) p.n = f.r->source().n;
  return p;
}

/// Whether B is stored by columns: as --order says, as its file states, or as the factors are.
bool is_by_columns(const ApplyOptions& o, const Source& b, const Source& factor) {
  if (!takes_order(b.file)) return false;
  if (o.order != Order::automatic) return o.order == Order::column;
  return (b.order == Order::automatic ? factor.order : b.order) == Order::column;
}

/// Finds the one way to read B.
RightSides sides_of(const ApplyOptions& o, const ApplyInputs& inputs) {
  const ApplyProblem& p = inputs.problem;
  const Source &factor = inputs.factor().source(), &b = inputs.b->source();
  const std::vector<RightSides> ways = readings({.a_leading = factor.leading,
                                                 .m = p.b_rows,
                                                 .n = p.x_rows,
                                                 .b_dims = dims_of(b),
                                                 .is_column = is_by_columns(o, b, factor)},
                                                o.rows);
  if (ways.size() == 1) return ways.front();
  const std::string text =
      fmt::format("{}: B is {}, and {} in {} is {}", escape(b.file), join(dims_of(b), "x"),
                  p.has_reflectors    ? "V"
                  : uses_q(p.product) ? "Q"
                                      : "R",
                  escape(inputs.factors.file), shape_text(factor));
  if (ways.empty())
    throw InputError(
        text + ": the shapes do not fit",
        fmt::format("for --with {} B needs a dimension of {}{}", name_of(o.product), p.b_rows,
                    o.rows == RowsOfB::automatic ? "" : ", where --rows says"));
  std::string hint = "say which is meant:";
  for (const RightSides& way : ways)
    hint += fmt::format("{} --rows {} ({})", &way == &ways.front() ? "" : ", or", name_of(way.rows),
                        describe(way));
  throw UsageError(fmt::format("{}: it fits in {} ways", text, ways.size()), hint);
}

void require_same_numbers(const ApplyInputs& inputs) {
  const Source &factor = inputs.factor().source(), &b = inputs.b->source();
  if (is_complex(factor.type) == is_complex(b.type)) return;
  throw InputError(fmt::format("{}: B is {}, and the factors in {} are {}", escape(b.file),
                               b.stored_type, escape(inputs.factors.file), factor.stored_type),
                   is_complex(b.type) ? "apply them to the real and to the imaginary part of B"
                                      : "store B with complex numbers: b.astype(complex) in NumPy");
}

}  // namespace

Reader& ApplyInputs::factor() const {
  if (problem.has_reflectors) return *factors.v;
  return uses_q(problem.product) ? *factors.q : *factors.r;
}

std::array<Reader*, 4> ApplyInputs::readers() const {
  return {&factor(), b.get(), problem.has_reflectors ? factors.tau.get() : nullptr,
          uses_q(problem.product) ? nullptr : factors.p.get()};
}

ApplyInputs open_apply_inputs(const ApplyOptions& o, const Limits& limits) {
  StoredFactors factors = open_given(o, limits.threads);
  const ApplyProblem problem = problem_of(o.product, factors);
  ApplyInputs inputs{.factors = std::move(factors), .problem = problem};
  ApplyProblem& p = inputs.problem;
  InputSpec spec{.path = o.b,
                 .dataset = {},
                 .order = Order::row,
                 .threads = limits.threads,
                 .memory_bytes = limits.host_bytes / 4,
                 .takes_vectors = true,
                 .raw_values = o.raw_values,
                 .takes_complex = true};
  if (takes_csv_options(o.b)) spec.csv = o.csv;
  if (o.raw_values && !takes_order(o.b)) refuse_raw_values(o.b);
  inputs.b = open_array(spec);
  require_same_numbers(inputs);
  inputs.sides = sides_of(o, inputs);
  const ElementType of_factor = inputs.factor().source().type, of_b = inputs.b->source().type;
  p.is_single = size_of(of_factor) == size_of(of_b) && real_of(of_b) == ElementType::float32;
  inputs.type = p.is_single        ? of_b
                : is_complex(of_b) ? ElementType::complex128
                                   : ElementType::float64;
  p.precision = precision_of(inputs.type);
  // What Q lacks in orthonormality is an error of the product, too.
  const Precision of_q = inputs.factors.is_mixed ? mixed_precision : precision_of(of_factor);
  if (uses_q(o.product)) p.precision.u = std::max(p.precision.u, of_q.u);
  return inputs;
}

}  // namespace qrtool

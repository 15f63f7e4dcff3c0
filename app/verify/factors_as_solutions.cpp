// SPDX-License-Identifier: Apache-2.0
// factors_as_solutions.cpp: looks at the first matrices of what was named as B and X.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "app/verify/verify_sides.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "io/file/input_file.hpp"
#include "io/open/formats.hpp"

namespace qrtool {
namespace {

// Far above the rounding errors of float32, and far below the products that columns of data have by
// chance.
constexpr double tolerance = 1e-3;
// With more columns Q'Q would take long.
constexpr index_t most_columns = 512;

/// Whether R is zero below its diagonal, up to rounding.
bool is_upper_triangular(Reader& r) {
  const index_t rows = r.source().m, n = r.source().n;
  std::vector<double> row(static_cast<std::size_t>(n));
  double upper = 0, lower = 0;
  for (index_t i = 0; i < rows; ++i) {
    r.read_rows(0, i, {row.data(), 1, n, n});
    for (index_t j = 0; j < n; ++j) {
      double& largest = j < i ? lower : upper;
      largest = std::max(largest, std::abs(row[static_cast<std::size_t>(j)]));
    }
  }
  return upper > 0 && lower <= tolerance * 1e-2 * upper;
}

/// Whether Q'Q = I.
bool is_orthonormal(Reader& q) {
  const index_t m = q.source().m, k = q.source().n;
  if (k > most_columns) return false;
  std::vector<double> row(static_cast<std::size_t>(k)), gram(static_cast<std::size_t>(k * k));
  for (index_t i = 0; i < m; ++i) {
    q.read_rows(0, i, {row.data(), 1, k, k});
    for (index_t a = 0; a < k; ++a)
      for (index_t b = 0; b <= a; ++b) gram[a * k + b] += row[a] * row[b];
  }
  for (index_t a = 0; a < k; ++a)
    for (index_t b = 0; b <= a; ++b)
      if (!(std::abs(gram[a * k + b] - (a == b ? 1 : 0)) <= tolerance)) return false;
  return true;
}

/// Whether q and r are m x k and k x n for each A, k columns from 2 on, of A's least dimension or
/// m.
bool have_shapes_of_factors(const Source& a, const Source& q, const Source& r) {
  const index_t k = q.n, least = std::min(a.m, a.n);
  return q.array_dims.empty() && r.array_dims.empty() && q.leading == a.leading &&
         r.leading == a.leading && a.count() > 0 && q.m == a.m && r.m == k && r.n == a.n && k > 1 &&
         (k == least || k == a.m);
}

}  // namespace

void refuse_factors(const SolveInputs& inputs, Reader& x) {
  const Source &a = inputs.a->source(), &q = inputs.b->source(), &r = x.source();
  if (is_complex(a.type) || !have_shapes_of_factors(a, q, r) || !is_upper_triangular(x) ||
      !is_orthonormal(*inputs.b))
    return;
  const std::string ending = ending_of(q.file);
  const bool is_set = format_of_output(q.file).files_of_output(q.file).size() > 1;
  const std::string set = "f" + (is_set ? ending : ".npy");
  throw UsageError(
      fmt::format("{}: it is upper triangular, and {} has orthonormal columns: they look like the "
                  "factors R and Q, and stand where B and X of a system do",
                  escape(r.file), escape(q.file)),
      is_set ? fmt::format("name them f.Q{0} and f.R{0}: qrtool verify {1} {2}", ending,
                           escape(a.file), set)
             : fmt::format("put them into one file as /Q and /R, f.h5: qrtool verify {} f.h5",
                           escape(a.file)));
}

}  // namespace qrtool

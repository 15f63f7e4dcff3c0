// SPDX-License-Identifier: Apache-2.0
// writing.hpp: writes files of factors with numbers that a test can compute again.
#pragma once

#include <algorithm>
#include <random>
#include <vector>

#include "io/open/output.hpp"
#include "io/write/writer.hpp"
#include "tests/io/hdf5/fixture.hpp"
#include "tests/io/reading.hpp"

namespace qrtool {

inline index_t count_of(const std::vector<index_t>& leading) {
  return std::accumulate(leading.begin(), leading.end(), index_t{1}, std::multiplies<>());
}

/// Reduced factors of m x n matrices with a report.
inline OutputSpec factors_spec(const std::vector<index_t>& leading, index_t m, index_t n,
                               Order order, ElementType type) {
  const index_t k = std::min(m, n);
  OutputSpec spec;
  spec.path = "o.h5";
  spec.leading = leading;
  spec.order = order;
  spec.datasets = {{"Q", type, m, k}, {"R", type, k, n}};
  spec.with_report = true;
  spec.report_columns = report_columns({.count = 1, .m = m, .n = n, .type = type});
  spec.threads = 2;
  spec.attributes = {{"format", "qrtool"},
                     {"order", std::string(name_of(order))},
                     {"variant", ""},
                     {"eps", 0x1p-23},
                     {"number", std::int64_t{1}}};
  return spec;
}

template <class T>
std::vector<T> random_numbers(index_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<T> normal;
  std::vector<T> values(static_cast<std::size_t>(count));
  for (T& value : values) value = normal(random);
  return values;
}

inline std::vector<MatrixReport> some_report(index_t count) {
  std::vector<MatrixReport> report(static_cast<std::size_t>(count));
  for (index_t i = 0; i < count; ++i) {
    const auto x = static_cast<double>(i);
    report[i] = {.residual = x + 0.1,
                 .orthogonality = x + 0.2,
                 .lower = x + 0.3,
                 .diagonal_ratio = x + 0.4,
                 .status = static_cast<Status>(i % 5),
                 .scale = static_cast<std::int32_t>(100 - i)};
  }
  return report;
}

/// Writes everything in calls of `step` matrices.
template <class T>
void write_file(const OutputSpec& spec, index_t step) {
  const auto writer = create_output(spec);
  const index_t count = count_of(spec.leading);
  unsigned seed = 0;
  for (const MatrixDataset& each : spec.datasets) {
    const auto values = random_numbers<T>(count * each.rows * each.cols, ++seed);
    const auto all = packed<const T>(values.data(), count, each.rows, each.cols);
    for (index_t first = 0; first < count; first += step) {
      writer->write(each.name, first, all.slice(first, std::min(step, count - first)));
    }
  }
  const auto report = some_report(count);
  for (index_t first = 0; first < count && spec.with_report; first += step) {
    writer->write_report(first, std::span(report).subspan(first, std::min(step, count - first)));
  }
  writer->commit();
}

}  // namespace qrtool

// SPDX-License-Identifier: Apache-2.0
// system_buffers.cpp: buffers that are kept.
#include "gpu/solve/parts/system_buffers.hpp"

#include <algorithm>

namespace qrtool {
namespace {

constexpr int shared_by_sets = -1;  // the place of a buffer that all sets use

}  // namespace

SystemJob SystemBuffers::job(const FactorJob& factor, const SystemShape& shape) const {
  return {.type = factor.problem.type,
          .n = factor.problem.n,
          .shape = shape,
          .a = factor.a,
          .r = factor.r,
          .b = b,
          .x = x,
          .se = se,
          .findings = findings,
          .of_columns = of_columns,
          .scratch = scratch,
          .errors = errors,
          .factor_groups = layout.factor_groups,
          .tall = tall};
}

void SystemBuffers::poison(Queue& queue, index_t count) const {
  const auto systems = static_cast<std::size_t>(count);
  const auto fill = [&](const Buffer& buffer, SystemLayout::Entry entry) {
    const std::size_t bytes = systems * layout.bytes[entry];
    if (bytes > 0) queue.fill(buffer, nan_word, bytes);
  };
  fill(x, SystemLayout::x);
  fill(se, SystemLayout::se);
  fill(findings, SystemLayout::findings);
  fill(errors, SystemLayout::errors);
}

Buffer SystemPool::grown(std::pair<int, std::size_t> place, std::size_t bytes) {
  return memory_.grown(buffers_[place], bytes);
}

Buffer SystemPool::shared(int entry, std::size_t bytes) {
  return grown({shared_by_sets, static_cast<std::size_t>(entry)}, bytes);
}

SystemBuffers SystemPool::get(const SystemLayout& layout, index_t count, int set) {
  using L = SystemLayout;
  const auto groups = static_cast<std::size_t>(std::min(count, layout.factor_groups));
  const auto take = [&](L::Entry entry) {
    return grown({set, entry}, layout.bytes[entry] * static_cast<std::size_t>(count));
  };
  return {.layout = layout,
          .b = take(L::b),
          .x = take(L::x),
          .se = take(L::se),
          .findings = take(L::findings),
          .of_columns = take(L::of_columns),
          .errors = take(L::errors),
          .b_sums = take(L::b_sums),
          .x_sums = take(L::x_sums),
          .weights = take(L::weights),
          .w_sums = take(L::w_sums),
          .left_out = take(L::left_out),
          .tall = {.partial = take(L::tall_partial),
                   .sums = take(L::tall_sums),
                   .state = take(L::tall_state)},
          .scratch = grown({shared_by_sets, 0}, layout.scratch_bytes * groups)};
}

}  // namespace qrtool

// SPDX-License-Identifier: Apache-2.0
// registry.cpp: the list of variants.
#include "gpu/registry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <vector>

#include "core/error.hpp"
#include "gpu/composed/leading/leading.hpp"
#include "gpu/composed/reconstruct/reconstruct.hpp"
#include "gpu/gram/gram.hpp"
#include "gpu/gram/group/gram_group.hpp"
#include "gpu/gram/tiles/gram_tiles.hpp"
#include "gpu/gram/twice/gram_twice.hpp"
#include "gpu/model/costs.hpp"
#include "gpu/model/tuning.hpp"
#include "gpu/reflectors/blocked/blocked.hpp"
#include "gpu/reflectors/complex/complex.hpp"
#include "gpu/reflectors/large/large.hpp"
#include "gpu/reflectors/small/small.hpp"
#include "gpu/reflectors/tall/tall.hpp"
#include "gpu/reflectors/textbook/textbook.hpp"
#include "gpu/reflectors/tiny/tiny.hpp"
#include "gpu/reflectors/vector/vector.hpp"

namespace qrtool {

std::span<const GpuVariant> gpu_variants() {
  static const std::array variants{
      vector_variant(),     tiny_variant(),        leading_variant(),  reconstruct_variant(),
      gram_group_variant(), gram_passes_variant(), complex_variant(),  gram_variant(),
      gram_tiles_variant(), gram_twice_variant(),  small_variant(),    blocked_variant(),
      tall_variant(),       large_variant(),       textbook_variant(),
  };
  return variants;
}

std::span<const Variant> opencl_variants() {
  static const std::vector<Variant> variants = [] {
    std::vector<Variant> list;
    for (const GpuVariant& variant : gpu_variants()) {
      list.push_back(variant.plan);
      list.back().costs = device_costs;
    }
    return list;
  }();
  return variants;
}

const GpuVariant& gpu_variant(const Variant& variant) {
  const std::span<const Variant> plans = opencl_variants();
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (&plans[i] == &variant) return gpu_variants()[i];
  }
  throw InternalError(fmt::format("{} is no variant of the OpenCL backend", variant.name));
}

namespace {

/// Whether further passes by `by`, which take `factor` times as long as `by` itself, take less time
/// than reflectors, for a batch that fills the device: which way a matrix takes must not depend on
/// its batch.
bool saves_time(std::string_view by, double factor, const GpuVariant& first, Problem p,
                const Limits& limits) {
  if (first.again == nullptr) return true;
  p.count = tuning::whole_passes_batch;
  const CostTable& costs = device_costs(limits);
  const std::string_view reflectors = first.again(p).plan.name;
  // Every call asks for the same shape again and again, and the table is text.
  struct Answer {
    Problem problem;
    const CostTable* costs = nullptr;
    std::string_view reflectors;
    bool saves = false;
  };
  thread_local std::map<std::string_view, Answer> answers;
  Answer& last = answers[by];
  if (last.problem == p && last.costs == &costs && last.reflectors == reflectors) return last.saves;
  const double passes = costs.seconds(by, p);
  const bool saves = !std::isfinite(passes) || factor * passes <= costs.seconds(reflectors, p);
  last = {p, &costs, reflectors, saves};
  return saves;
}

/// Whether `route`, by a warp or a group for each matrix, may be the fastest way by further passes.
/// Where products in float64 are slow it is not, but `gram` and `gram_group` go on in their own
/// way.
bool takes_whole(const FurtherRoute& route, const GpuVariant& first, const Problem& p,
                 const Limits& limits) {
  using namespace tuning;
  if (!limits.float64_products && first.file != route.file) return false;
  // narrow_passes.cl begins with the sums of `tall`.
  if (first.slab_sums != nullptr) return false;
  if (p.m > whole_passes_most_rows && p.m * p.n >= narrow_least.entries) return false;
  return route.fits(p, limits);
}

bool takes_warps(const GpuVariant& first, const Problem& p, const Limits& limits) {
  using namespace tuning;
  // No table says what is faster there.
  if (!limits.float64_products) return p.n >= group_passes_least_columns;
  const bool is_single = p.type == ElementType::float32;
  return saves_time(gram_variant().plan.name,
                    is_single ? warp_passes_cost_single : warp_passes_cost_double, first, p,
                    limits);
}

bool takes_groups(const GpuVariant& first, const Problem& p, const Limits& limits) {
  using namespace tuning;
  if (p.n < group_passes_least_columns) return false;
  if (p.n < gram_group_least_columns) return p.m > gram_small_rows;
  if (!saves_time(gram_group_variant().plan.name, group_passes_cost, first, p, limits))
    return false;
  return p.type == ElementType::float64 || p.m > gram_small_rows;
}

}  // namespace

const FurtherRoute* further_route(const GpuVariant& first, const Problem& p, const Limits& limits) {
  static const FurtherRoute any = further_passes(), narrow = narrow_passes(),
                            group = group_passes(), warp = warp_passes();
  const bool has_rest = first.rest_is_refused != nullptr && first.rest_is_refused(p, limits);
  if (first.again == nullptr && !has_rest) return nullptr;
  // gram_passes has taken them already.
  if (is_complex(p.type) && first.file == any.file) return nullptr;
  if (is_complex(p.type)) return any.fits(p, limits) ? &any : nullptr;
  if (takes_whole(warp, first, p, limits) && takes_warps(first, p, limits)) return &warp;
  if (takes_whole(group, first, p, limits) && takes_groups(first, p, limits)) return &group;
  const bool is_narrow = narrow.fits(p, limits);
  // What takes flags takes many matrices at once; `large` takes one after another.
  const bool by_many = !has_rest && first.again(p).takes_flags;
  const tuning::FurtherLeast& least = is_narrow ? tuning::narrow_least : tuning::further_least;
  if (p.n < (by_many ? least.columns : least.tall_columns)) return nullptr;
  if (by_many && p.m * p.n < least.entries) return nullptr;
  if (is_narrow) return &narrow;
  return any.fits(p, limits) ? &any : nullptr;
}

}  // namespace qrtool

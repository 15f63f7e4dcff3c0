// SPDX-License-Identifier: Apache-2.0
// tall.cpp: the host half of tall.cl: m >> n; Cholesky of A'A in float64 if it is accurate enough,
// else a tree of Householder factorizations (LAPACK latsqr, getsqrhrt).
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/cpu/tall/tall.hpp"
#include "gpu/check/device_check.hpp"
#include "gpu/common/tile_lanes.hpp"
#include "gpu/model/host_sample.hpp"
#include "gpu/model/tuning.hpp"
#include "gpu/products/tall_sums.hpp"
#include "gpu/reflectors/tall/tall.hpp"
#include "gpu/reflectors/tall/tuning.hpp"

namespace qrtool {
namespace {

constexpr int plain_group = 256;
constexpr index_t product_rows = 64;  // PRODUCT_ROWS of multiply_level

/// The type in which the tree computes.
constexpr std::array<std::string_view, 1> heavy_kernels{"factor_level"};

ElementType computes_in(const Problem& p) {
  return p.n <= tuning::tall_few_columns ? ElementType::float64 : p.type;
}

/// Of GRAM_BODY, which is 0 for no A'A, 1 for plain sums, and 2 for matrix products.
constexpr int in_pairs = 3;

int gram_body(const Problem& p, const Limits& limits) {
  if (p.type != ElementType::float32) return 0;
  const bool is_single = computes_in(p) == ElementType::float32 || !limits.has_float64;
  if (limits.sums_in_pairs() && is_single) return in_pairs;
  return limits.fast_float64 ? row_sums_body(limits) : 0;
}

std::string arithmetic(const Problem& p) { return std::string(name_of(computes_in(p))); }

/// Rows per block of the tree: as many as fit into the registers of a group.
index_t block_rows(const Problem& p) {
  const auto columns = static_cast<index_t>(std::bit_ceil(static_cast<std::uint64_t>(p.n)));
  const index_t rows = tuning::tall_block_bytes / (columns * static_cast<index_t>(size_of(p.type)));
  return std::min(rows, tuning::tall_max_block_rows);
}

LaneTile choose_tile(const Problem& p, const Limits& limits) {
  const int n = static_cast<int>(p.n), rows = static_cast<int>(block_rows(p));
  LaneTile tile{};
  tile.lanes_across = n <= 4 ? 1 : n <= 8 ? 2 : n <= 16 ? 4 : n <= 64 ? 8 : 16;
  tile.columns_per_lane = static_cast<int>(ceil_divide(n, tile.lanes_across));
  const int most_rows =
      tuning::tall_tile_bytes / (tile.columns_per_lane * static_cast<int>(size_of(computes_in(p))));
  tile.rows_per_lane =
      limits.is_cpu
          ? rows / tuning::tall_cpu_row_splits
          : std::min(tuning::tall_lane_rows, static_cast<int>(std::bit_floor(unsigned(most_rows))));
  tile.row_splits = rows / tile.rows_per_lane;
  return tile;
}

/// Bytes of local memory per group: the largest of factor_level, multiply_level, sum_gram and
/// factor_tall_gram.
std::size_t local_bytes(const Problem& p, const Limits& limits) {
  const LaneTile tile = choose_tile(p, limits);
  const int reals = tile.shown_entries() + 3 * tile.columns() + 2 +
                    tile.exchanged_entries(limits, 1);  // factor_level
  const bool has_gram = gram_body(p, limits) != 0;
  const std::size_t number_bytes = has_gram ? sizeof(double) : size_of(computes_in(p));
  std::size_t bytes = std::max({static_cast<std::size_t>(reals) * size_of(computes_in(p)),
                                tall_product_local_bytes(p.n, number_bytes),  // multiply_level
                                sizeof(int) * static_cast<std::size_t>(p.n)});
  if (!has_gram) return bytes;
  const RowSums sums{
      .n = p.n, .type = p.type, .body = gram_body(p, limits), .has_right_side = false};
  return std::max({bytes, row_sums_local_bytes(sums), tall_square_local_bytes(p.n)});
}

/// The number of rows of each level. Level 0 is A.
std::vector<index_t> level_rows(const Problem& p) {
  std::vector<index_t> rows{p.m};
  while (rows.back() > block_rows(p)) {
    rows.push_back(ceil_divide(rows.back(), block_rows(p)) * p.n);
  }
  return rows;
}

Fit fits(const Problem& p, const Limits& limits) {
  const std::string objection = general_objection(p, limits, p.type);
  if (!objection.empty()) return {false, objection};
  if (p.mode != Mode::reduced && p.mode != Mode::r) return {false, "takes modes reduced and r"};
  const index_t most = tall_most_columns(p);
  if (p.n < 1 || p.n > most) return {false, "takes 1 to " + std::to_string(most) + " columns"};
  if (p.m <= block_rows(p)) {
    return {false, "takes more than " + std::to_string(block_rows(p)) + " rows of " +
                       std::to_string(p.n) + " columns"};
  }
  const LaneTile tile = choose_tile(p, limits);
  const int group = std::max(tile.lanes(), plain_group);
  const std::string needs = group_objection(group, local_bytes(p, limits), limits);
  if (!needs.empty()) return {false, needs};
  const int body = gram_body(p, limits);
  if (body == 0) return {true, "a tree of blocks of rows"};
  return {true, body == in_pairs ? "Cholesky of A'A in pairs of floats, or a tree of blocks of rows"
                                 : "Cholesky of A'A, or a tree of blocks of rows"};
}

Params tune(const Problem& p, const Limits& limits) {
  const LaneTile tile = choose_tile(p, limits);
  const int body = gram_body(p, limits);
  Params params{
      {"COLUMNS_OF_A", static_cast<int>(p.n)},    {"GRAM_BODY", body},
      {"LANE_ROWS", tile.rows_per_lane},          {"LANE_COLUMNS", tile.columns_per_lane},
      {"LANES_ACROSS", tile.lanes_across},        {"ROW_SPLITS", tile.row_splits},
      {"COLUMN_STEP", tile.lanes_across},         {"WANT_Q", p.wants_q() || p.sign == Sign::lapack},
      {"GRAM_GROUP", row_sums_group(p.n, body)},  {"FACTOR_GROUP", plain_group},
      {"PRODUCT_GROUP", tall_product_group(body)}};
  if (body == in_pairs) params["WIDE_PAIRS"] = 1;
  return params;
}

/// The tree for every matrix.
Params tune_reflectors(const Problem& p, const Limits& limits) {
  Params params = tune(p, limits);
  params["GRAM_BODY"] = 0;
  return params;
}

SlabShape slabs_of(const Problem& p) { return row_sums_slabs(p.m, p.n); }

double condition_limit(const FactorJob& job) {
  if (job.params.contains(unguarded)) return std::numeric_limits<double>::infinity();
  return tall_condition_limit(job.problem, job.params.at("GRAM_BODY"));
}

/// The work buffers, in the order of workspace().
enum WorkBuffer {
  slab_sums,
  slab_codes,
  inverse,
  codes,
  routes,
  signs,
  levels,
  tops,
  sign_work  // of find_signs
};

std::vector<std::size_t> workspace(const Problem& p) {
  const std::size_t real = size_of(computes_in(p)), of_double = sizeof(double);
  const auto n = static_cast<std::size_t>(p.n);
  const auto slabs = static_cast<std::size_t>(slabs_of(p).count);
  const std::vector<index_t> rows = level_rows(p);
  const index_t upper = std::accumulate(rows.begin() + 1, rows.end(), index_t{0});
  const bool may_sum = p.type == ElementType::float32, lapack = p.sign == Sign::lapack;
  return {may_sum ? of_double * slabs * n * n : 0,
          sizeof(int) * slabs * n,
          may_sum ? of_double * n * n : 0,
          sizeof(int) * n,
          sizeof(int),
          real * n,
          of_double * static_cast<std::size_t>(upper) * n,
          lapack ? real * n * n : 0,
          lapack ? 2 * of_double * n * n : 0};
}

/// The shape of level l for a launch whose groups loop over its `pieces`: one group per piece, but
/// at most `most_groups`.
LevelShape level_shape(const Problem& p, std::size_t l, index_t pieces, index_t most_groups) {
  const std::vector<index_t> rows = level_rows(p);
  LevelShape shape{};
  for (std::size_t i = 1; i < rows.size(); ++i) {
    shape.entries += rows[i] * p.n;
    if (i < l) shape.offset += rows[i] * p.n;
  }
  shape.next = l == 0 ? 0 : shape.offset + rows[l] * p.n;
  shape.rows = static_cast<int>(rows[l]);
  shape.levels = 1;
  shape.groups = static_cast<int>(std::min(pieces, most_groups));
  shape.is_first = l == 0;
  return shape;
}

/// The first of the last levels, which have so few blocks that one group factors all of them.
std::size_t first_joined_level(const Problem& p) {
  const std::vector<index_t> rows = level_rows(p);
  std::size_t l = rows.size() - 1;
  index_t blocks = 1;
  while (l > 1) {
    blocks += ceil_divide(rows[l - 1], block_rows(p));
    if (blocks > tuning::tall_joined_blocks) break;
    --l;
  }
  return l;
}

/// The scales of the columns, and R by A'A where there is such a route.
void enqueue_gram(const FactorJob& job, const FactorShape& shape, Launcher& launch) {
  const Problem& p = job.problem;
  const SlabShape slabs = slabs_of(p);
  const std::vector<Buffer>& w = job.work;
  const auto factor = [&](auto limit) {
    launch("factor_tall_gram", job.count, job.params.at("FACTOR_GROUP"), w[inverse], w[slab_codes],
           w[codes], w[routes], w[signs], job.r, job.magnitudes, shape, slabs, limit);
  };
  const int body = job.params.at("GRAM_BODY");
  if (body == 0 || body == in_pairs) {
    launch("measure_columns", job.count * slabs.count, plain_group, job.a, w[slab_codes], shape,
           slabs);
    launch("choose_scales", job.count, plain_group, w[slab_codes], w[codes], w[routes], w[signs],
           job.magnitudes, slabs);
  }
  if (body == 0) return;
  launch("sum_gram", job.count * slabs.count, job.params.at("GRAM_GROUP"), job.a, w[slab_sums],
         w[slab_codes], w[codes], shape, slabs);
  launch("sum_slabs", job.count * ceil_divide(p.n * p.n, 32), plain_group, w[slab_sums], w[inverse],
         slabs);
  if (body == in_pairs) {
    factor(static_cast<float>(condition_limit(job)));
  } else {
    factor(condition_limit(job));
  }
  launch.mark_routes();
}

/// One launch of factor_level: its first level, the number of its levels, and the number of blocks
/// of the first level per group.
struct TreeLaunch {
  std::size_t first, levels;
  index_t span;
};

/// The launches of factor_level. They are few, because each costs time even if no matrix needs the
/// tree. A group can go on to the next level if its blocks there consist of its own R factors
/// alone. This requires that no R factor belongs to two blocks: n divides the rows of a block.
std::vector<TreeLaunch> tree_launches(const Problem& p) {
  const std::vector<index_t> rows = level_rows(p);
  const std::size_t joined = first_joined_level(p);
  const index_t fan_in = block_rows(p) / p.n, left_over = block_rows(p) % p.n;
  std::vector<TreeLaunch> launches;
  for (std::size_t l = 0; l < joined; l += launches.back().levels) {
    TreeLaunch launch{l, 1, 1};
    while (left_over == 0 && l + launch.levels < joined &&
           launch.span * fan_in <= tuning::tall_subtree_blocks) {
      launch.span *= fan_in;
      ++launch.levels;
    }
    if (launch.levels == 1)
      launch.span = ceil_divide(ceil_divide(rows[l], block_rows(p)), tuning::tall_groups);
    launches.push_back(launch);
  }
  launches.push_back({joined, rows.size() - joined, ceil_divide(rows[joined], block_rows(p))});
  return launches;
}

void enqueue_tree(const FactorJob& job, const FactorShape& shape, Launcher& launch) {
  const Problem& p = job.problem;
  const int lanes = job.params.at("LANES_ACROSS") * job.params.at("ROW_SPLITS");
  for (const TreeLaunch& tree : tree_launches(p)) {
    const index_t blocks = ceil_divide(level_rows(p)[tree.first], block_rows(p));
    LevelShape level = level_shape(p, tree.first, ceil_divide(blocks, tree.span), blocks);
    level.levels = static_cast<int>(tree.levels);
    level.span = static_cast<int>(tree.span);
    launch("factor_level", job.count * level.groups, lanes, job.a, job.q, job.work[levels],
           job.work[codes], job.work[routes], job.work[signs], job.work[tops], job.r, shape, level);
  }
}

/// Q of the matrices on the route by A'A.
void enqueue_gram_q(const FactorJob& job, const FactorShape& shape, Launcher& launch) {
  const std::vector<Buffer>& w = job.work;
  const int parts = static_cast<int>(
      std::min(ceil_divide(job.problem.m, product_rows), tuning::tall_product_groups));
  launch("form_q_gram", job.count * parts, job.params.at("PRODUCT_GROUP"), job.a, w[inverse],
         w[routes], w[signs], job.q, w[codes], shape, parts);
}

/// Q of the other matrices.
void enqueue_tree_q(const FactorJob& job, const FactorShape& shape, Launcher& launch) {
  const Problem& p = job.problem;
  const std::vector<Buffer>& w = job.work;
  for (std::size_t l = level_rows(p).size() - 1; l-- > 0;) {
    const index_t tiles = ceil_divide(level_rows(p)[l], product_rows);
    const LevelShape level = level_shape(p, l, tiles, tuning::tall_product_groups);
    launch("multiply_level", job.count * level.groups, plain_group, job.q, w[levels], w[routes],
           w[signs], shape, level);
  }
}

bool has_gram(const FactorJob& job) { return job.params.at("GRAM_BODY") != 0; }

/// Whether only matrices that A'A does not give need the tree: find_signs is for both routes, and
/// runs between the tree and Q.
bool tree_is_last(const FactorJob& job) {
  return has_gram(job) && job.problem.sign == Sign::positive;
}

bool rest_is_refused(const Problem& p, const Limits& limits) {
  return gram_body(p, limits) != 0 && p.sign == Sign::positive;
}

void enqueue_rest(const FactorJob& job, Launcher& launch) {
  if (!tree_is_last(job)) return;
  const FactorShape shape = factor_shape(job.problem, job.count);
  enqueue_tree(job, shape, launch);
  if (job.problem.wants_q()) enqueue_tree_q(job, shape, launch);
}

void enqueue(const FactorJob& job, Launcher& launch) {
  const Problem& p = job.problem;
  const FactorShape shape = factor_shape(p, job.count);
  enqueue_gram(job, shape, launch);
  if (tree_is_last(job)) {
    if (p.wants_q()) enqueue_gram_q(job, shape, launch);
    return;
  }
  enqueue_tree(job, shape, launch);
  if (p.sign == Sign::lapack) {
    LevelShape level = level_shape(p, 0, 1, 1);
    level.levels = static_cast<int>(level_rows(p).size()) - 1;
    launch("find_signs", job.count, plain_group, job.a, job.work[inverse], job.work[levels],
           job.work[tops], job.work[routes], job.work[signs], job.r, job.work[sign_work],
           job.work[codes], shape, level);
  }
  if (!p.wants_q()) return;
  if (has_gram(job)) enqueue_gram_q(job, shape, launch);
  enqueue_tree_q(job, shape, launch);
}

const Buffer* slab_sums_of(const FactorJob& job) {
  return has_gram(job) ? &job.work[slab_sums] : nullptr;
}

/// Without A'A all matrices go through the tree.
const Buffer* routes_of(const FactorJob& job) {
  return has_gram(job) ? &job.work[routes] : nullptr;
}

/// Rows per leaf of a matrix that is handed over by rows. A leaf has 32 MiB: enough for the full
/// speed of the copies and for sums over many slabs.
index_t leaf_rows(const Problem& p) {
  const index_t columns = std::max<index_t>(p.n, 1);  // plans of empty matrices ask, too
  const index_t row_bytes = columns * static_cast<index_t>(size_of(p.type));
  return std::max<index_t>(tuning::tall_leaf_bytes / row_bytes / 1024, 1) * 1024;
}

std::size_t row_state_bytes(const Problem& p) {
  const TallShape shape(p.m, p.n, leaf_rows(p));
  return p.type == ElementType::float32 ? TallTree<float>::bytes(shape)
                                        : TallTree<double>::bytes(shape);
}

}  // namespace

/// In the rows of a slab, which warps share with up to 64 columns (tall_sums.clh), in the sum of
/// the slabs by eight work-items, and in n eliminations.
double tall_rounded_terms(const Problem& p, int body) {
  constexpr index_t most_shared_columns = 64, sum_parts = 8, few = 16;
  const SlabShape slabs = slabs_of(p);
  const bool is_shared = body == 2 && p.n <= most_shared_columns;
  const index_t warps = is_shared ? row_sums_group(p.n, body) / 32 : 1;
  return static_cast<double>(std::min<index_t>(slabs.rows, p.m) / warps + warps +
                             slabs.count / sum_parts + sum_parts + p.n + few);
}

/// The same in pairs of floats, in units of 2^-48 (tall.cl): the sums of 16 rows, then additions.
double tall_errors_in_pairs(const Problem& p) {
  constexpr index_t rows_of_part = 16, of_parts = 1 << 18, of_addition = 4, sum_parts = 8, few = 64;
  const SlabShape slabs = slabs_of(p);
  const index_t additions =
      ceil_divide(slabs.rows, rows_of_part) + slabs.count / sum_parts + sum_parts + p.n;
  return static_cast<double>(of_parts + of_addition * additions + few);
}

/// R^-1 and Q add 3 n roundings. In pairs R^-1 adds 18 n units, and of the product with R^-1 in
/// float32 an entry adds 10 units of 2^-24 times ||A|| ||X||, which count twice.
double tall_condition_limit(const Problem& p, int body) {
  const auto columns = static_cast<double>(p.n);
  const double rounding = 0x1p-23 * std::sqrt(columns);
  const double most = tuning::gram_guard_share * orthogonality_bar(p) - rounding;
  if (body == in_pairs) {
    // squares * limit + product * sqrt(limit) = most
    const double squares = (tall_errors_in_pairs(p) + 18 * columns) * 0x1p-48;
    const double half_product = 10 * 0x1p-24;
    if (most <= 0) return 0;
    const double root =
        most / (half_product + std::sqrt(half_product * half_product + squares * most));
    return root * root;
  }
  return most / ((tall_rounded_terms(p, body) + 3 * columns) * 0x1p-53);
}

int tall_product_group(int body) { return body == 2 ? 128 : plain_group; }

std::size_t tall_square_local_bytes(index_t n) {
  const auto across = static_cast<std::size_t>(ceil_divide(n, 16));
  return sizeof(double) * (80 * across + 16 + plain_group) + sizeof(int);
}

std::size_t tall_product_local_bytes(index_t n, std::size_t number_bytes) {
  return number_bytes * static_cast<std::size_t>(product_rows * 17 + 256 * ceil_divide(n, 16));
}

index_t tall_most_columns(const Problem& p) {
  if (p.type != ElementType::float32) return tuning::tall_double_columns;
  return p.sign == Sign::lapack ? tuning::tall_sign_columns : tuning::tall_max_columns;
}

GpuVariant tall_variant() {
  return {
      .plan = {.name = "opencl/tall",
               .summary = "tall, to 128 columns; Cholesky of A'A in float64, or a tree of blocks",
               .fits = fits,
               .tune = tune,
               .host_workspace_bytes = host_check_bytes,
               .device_workspace_bytes = device_bytes_of<tall_variant>,
               .arithmetic = arithmetic,
               .row_state_bytes = row_state_bytes,
               .reflectors = tune_reflectors,
               .leaf_rows = leaf_rows},
      .file = "gpu/reflectors/tall/tall.cl",
      .workspace = workspace,
      .enqueue = enqueue,
      .computes_in = computes_in,
      .enqueue_rest = enqueue_rest,
      .rest_is_refused = rest_is_refused,
      .slab_sums = slab_sums_of,
      .routes = routes_of,
      .local_bytes = local_bytes,
      .heavy_kernels = heavy_kernels};
}

}  // namespace qrtool

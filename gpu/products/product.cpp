// SPDX-License-Identifier: Apache-2.0
// product.cpp: the build parameters of the kernels of gemm.cl, and their launches.
#include "gpu/products/product.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "gpu/products/tuning.hpp"

namespace qrtool {
namespace {

/// Exponent bound of halves, whose largest number is 65504.
constexpr int largest_exponent = 15;

/// Side of a tile of packed_tile.clh, which is also its number of work-items.
constexpr index_t packed_tile = 128;
constexpr int packed_group = 128;

float scale_for(double bound) {
  return static_cast<float>(std::ldexp(1.0, largest_exponent - std::ilogb(bound) - 1));
}

/// Whether the matrix units multiply halves. These need scales and their own tiles.
bool has_halves(ProductBody body) {
  return body == ProductBody::three_halves || body == ProductBody::half;
}

tuning::ProductTile wide_tile(ElementType real, ProductBody body) {
  if (has_halves(body)) return tuning::product_halves_tile;
  if (body == ProductBody::floats) return tuning::product_floats_tile;
  if (body == ProductBody::doubles) return tuning::product_double_units_tile;
  return real == ElementType::float64 ? tuning::product_double_tile : tuning::product_tile;
}

int tile(const Params& params, ProductKind kind, const char* side) {
  return params.at((kind == ProductKind::wide ? std::string("WIDE_") : "NARROW_") + side);
}

int group_size(const Params& params, ProductKind kind) {
  return tile(params, kind, "M") / tile(params, kind, "WARP_M") *
         (tile(params, kind, "N") / tile(params, kind, "WARP_N")) * 32;
}

/// The kernel for tiles of a kind: its name says which body it has.
std::string name_of_kernel(const Params& params, ProductKind kind, const std::string& verb) {
  const auto body = static_cast<ProductBody>(params.at("PRODUCT_BODY"));
  const bool is_wide = kind == ProductKind::wide;
  const char* end = body == ProductBody::doubles             ? "_doubles"
                    : body == ProductBody::floats && is_wide ? "_floats"
                                                             : "_product";
  return (is_wide ? "wide_" : "narrow_") + verb + end;
}

}  // namespace

Params product_params(ElementType real, ProductBody body, int alignment, int narrow,
                      bool is_nvidia) {
  const bool is_fma = !has_halves(body), is_double = real == ElementType::float64;
  const tuning::ProductTile wide = wide_tile(real, body);
  Params params = {{"PRODUCT_BODY", static_cast<int>(body)},
                   {"WIDE_M", wide.rows},
                   {"WIDE_N", wide.cols},
                   {"WIDE_WARP_M", wide.warp_rows},
                   {"WIDE_WARP_N", wide.warp_cols},
                   {"NARROW_M", narrow},
                   {"NARROW_N", narrow},
                   {"NARROW_WARP_M", is_fma ? 16 : narrow / 2},
                   {"NARROW_WARP_N", is_fma && !is_double ? narrow : 32},
                   {"DEPTH", wide.depth},
                   {"BUFFERS", wide.buffers},
                   {"A_ALIGNMENT", 4},
                   {"B_ALIGNMENT", alignment}};
  if (body == ProductBody::doubles) {
    params["NARROW_WARP_N"] = narrow / 2;
    params["DOUBLE_STAGES"] = wide.buffers;
  }
  if (body == ProductBody::floats) {
    params["WIDE_DEPTH"] = wide.depth;
    params["WIDE_STAGES"] = wide.buffers;
    params["DEPTH"] = tuning::product_tile.depth;
    params["BUFFERS"] = tuning::product_tile.buffers;
    params["MMA"] = is_nvidia ? 1 : 0;
    if (is_nvidia) params[std::string(most_registers)] = tuning::product_floats_registers;
  }
  return params;
}

void settle_after(Params& params, std::int64_t terms) {
  if (params.at("PRODUCT_BODY") == static_cast<int>(ProductBody::doubles))
    params["DOUBLE_SETTLE"] = static_cast<int>(terms);
}

std::size_t product_local_bytes(ElementType real, const Params& params) {
  const auto body = static_cast<ProductBody>(params.at("PRODUCT_BODY"));
  const int depth = params.at("DEPTH"), buffers = params.at("BUFFERS");
  const auto sides = [&](const std::string& kind) {
    return std::pair{params.at(kind + "_M"), params.at(kind + "_N")};
  };
  const auto bytes = [](int entries, std::size_t size) {
    return ceil_divide(entries * static_cast<index_t>(size), 16) * 16;
  };
  const auto plain = [&](const std::string& kind) {  // gemm_tile.clh, without matrix units
    const auto [rows, cols] = sides(kind);
    const std::size_t size = body == ProductBody::stored_halves ? 2 : size_of(real);
    return bytes(buffers * depth * (rows + cols + 2 * 4), size);
  };
  const auto units = [&](const std::string& kind, int parts) {  // gemm_tile.clh, halves
    const auto [rows, cols] = sides(kind);
    const int a = std::max(depth * (rows + 8), rows * (depth + 8));
    return bytes(buffers * parts * (a + depth * (cols + 8)), 2);
  };
  const auto doubles = [&](const std::string& kind) {  // double_tile.clh
    const auto [rows, cols] = sides(kind);
    const int a = depth * (rows + 4);
    return bytes(params.at("DOUBLE_STAGES") * (a + depth * (cols + 4)), sizeof(double));
  };
  index_t most = 0;
  switch (body) {
    case ProductBody::fma:
    case ProductBody::stored_halves:
      most = std::max(plain("WIDE"), plain("NARROW"));
      break;
    case ProductBody::doubles:
      most = std::max(doubles("WIDE"), doubles("NARROW"));
      break;
    case ProductBody::floats: {  // float_tile.clh
      const auto [rows, cols] = sides("WIDE");
      const int stages = params.at("WIDE_STAGES") * params.at("WIDE_DEPTH");
      most = std::max(bytes(stages * (rows + cols), sizeof(float)), plain("NARROW"));
      break;
    }
    case ProductBody::three_halves:
    case ProductBody::half: {  // packed_tile.clh
      const int parts = body == ProductBody::three_halves ? 2 : 1;
      const index_t stage = 8 * parts * 32 * 16, stage_of_b = stage + 16 * (packed_tile + 4) * 4;
      most = std::max({4 * stage, 2 * stage_of_b, units("NARROW", parts)});
      break;
    }
  }
  return static_cast<std::size_t>(most);
}

index_t product_tiles(const Params& params, ProductKind kind, index_t rows, index_t cols) {
  return ceil_divide(rows, tile(params, kind, "M")) * ceil_divide(cols, tile(params, kind, "N"));
}

ProductScales product_scales(const Params& params, double a_bound, double b_bound) {
  if (!has_halves(static_cast<ProductBody>(params.at("PRODUCT_BODY")))) return {};
  return {scale_for(a_bound), scale_for(b_bound)};
}

bool takes_packed(const Params& params) {
  return has_halves(static_cast<ProductBody>(params.at("PRODUCT_BODY")));
}

bool takes_transposed(const Params& params) {
  return params.at("PRODUCT_BODY") == static_cast<int>(ProductBody::floats);
}

index_t packed_blocks(index_t entries) {
  return ceil_divide(entries, packed_tile) * packed_tile / 16;
}

void pack_operand(Launcher& launch, const PackShape& shape, Packing kind, float scale,
                  const Buffer& x, const Buffer& to) {
  const index_t words = index_t{shape.row_blocks} * shape.col_blocks * 32;
  launch("pack_halves_of", ceil_divide(shape.count * words, packed_group), packed_group, x, to,
         shape, scale, static_cast<int>(kind));
}

void transpose_operand(Launcher& launch, const PackShape& shape, Packing kind, const Buffer& x,
                       const Buffer& to) {
  constexpr int side = 32, group = 256;
  const index_t squares =
      ceil_divide(shape.row_blocks * 16, side) * ceil_divide(shape.col_blocks * 16, side);
  launch("transpose_operand", shape.count * squares, group, x, to, shape,
         static_cast<int>(kind == Packing::reflectors));
}

void enqueue_subtract(Launcher& launch, const Params& params, ProductKind kind,
                      const ProductShape& shape, ProductScales scales, const Buffer& a,
                      const Buffer& b, const Buffer& c) {
  if (kind == ProductKind::wide && takes_packed(params)) {
    launch("packed_subtract_product",
           shape.count * product_tiles(params, kind, shape.rows, shape.cols), packed_group, a, b, c,
           shape, 1 / (scales.a * scales.b));
    return;
  }
  launch(name_of_kernel(params, kind, "subtract").c_str(),
         shape.count * product_tiles(params, kind, shape.rows, shape.cols),
         group_size(params, kind), a, b, c, shape, scales.a, scales.b);
}

void enqueue_transposed(Launcher& launch, const Params& params, ProductKind kind,
                        const ProductShape& shape, ProductScales scales, const Buffer& a,
                        const Buffer& left, const Buffer& b, const Buffer& z) {
  if (kind == ProductKind::wide && takes_packed(params)) {
    launch("packed_transposed_product",
           shape.count * shape.slabs * product_tiles(params, kind, shape.rows, shape.cols),
           packed_group, a, b, z, shape, scales.b, 1 / (scales.a * scales.b));
    return;
  }
  launch(name_of_kernel(params, kind, "transposed").c_str(),
         shape.count * shape.slabs * product_tiles(params, kind, shape.rows, shape.cols),
         group_size(params, kind), a, left, b, z, shape, scales.a, scales.b);
}

void enqueue_transposed_packed(Launcher& launch, const Params& params, const ProductShape& shape,
                               ProductScales scales, float scale_of_z, const Buffer& a,
                               const Buffer& b, const Buffer& z) {
  launch("packed_transposed_packed",
         shape.count * product_tiles(params, ProductKind::wide, shape.rows, shape.cols),
         packed_group, a, b, z, shape, scales.b, scale_of_z / (scales.a * scales.b));
}

}  // namespace qrtool

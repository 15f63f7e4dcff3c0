// SPDX-License-Identifier: Apache-2.0
// product_rates.cpp: measures the speed of the products of gemm.cl.
#include "gpu/products/product_rates.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>

#include "gpu/host/session.hpp"
#include "gpu/products/product.hpp"

namespace qrtool {
namespace {

constexpr int repeats = 7, checked = 128, slabs = 4;

/// Times one body, with A (rows x depth), B (depth x rows), C and Z (rows x rows).
template <class T>
class Bench {
 public:
  Bench(const DeviceInfo& device, ProductBody body)
      : session_(session_for(device)),
        queue_(session_.context->queue()),
        is_small_(device.limits.is_cpu),
        params_(product_params(element_type<T>, body, 4, 64, device.limits.has_nvidia_mma)) {
    Problem problem;
    problem.type = element_type<T>;
    launch_.emplace(kernels_, *queue_, session_.programs,
                    ProgramSource{"gpu/products/gemm.cl",
                                  defines_for(problem, params_, element_type<T>), "bench --gemm"});
    // Buffers of rows x rows entries are large enough for each operand of both products.
    std::mt19937 random(1);
    std::uniform_real_distribution<double> uniform(-1, 1);
    host_.resize(static_cast<std::size_t>(rows()) * static_cast<std::size_t>(rows()));
    std::generate(host_.begin(), host_.end(), [&] { return static_cast<T>(uniform(random)); });
    for (Buffer* buffer : {&a_, &b_, &c_}) {
      *buffer = session_.context->allocate(host_.size() * sizeof(T));
      queue_->write(*buffer, host_.data(), host_.size() * sizeof(T));
    }
    terms_ = operand(Packing::terms, a_, rows(), depth());
    columns_ = takes_transposed(params_) ? Operand{a_, rows()} : terms_;
    products_ = operand(Packing::products, b_, depth(), rows());
  }

  ProductRate measure(std::string_view name) {
    ProductRate rate;
    rate.body = name;
    rate.type = element_type<T>;
    rate.rows = rows();
    rate.depth = depth();
    rate.peak = peak();
    const double operations = 2.0 * rows() * rows() * depth();
    const ProductScales scales = product_scales(params_, 1, 1);
    rate.subtract = operations / seconds([&] {
                      enqueue_subtract(*launch_, params_, ProductKind::wide, shape(depth()), scales,
                                       terms_.buffer, products_.buffer, c_);
                    });
    ProductShape z = shape(rows());
    z.lda = columns_.ld;
    z.ldb = rows();
    z.rows = depth();
    z.slabs = slabs;
    z.slab_depth = rows() / slabs;
    z.slab_stride = z.rows * index_t{z.cols};
    rate.transposed = operations / seconds([&] {
                        enqueue_transposed(*launch_, params_, ProductKind::wide, z, scales,
                                           columns_.buffer, a_, b_, c_);
                      });
    rate.error = error();
    return rate;
  }

 private:
  int rows() const { return is_small_ ? 256 : 8192; }
  int depth() const { return is_small_ ? 64 : 256; }

  ProductShape shape(int terms) const {
    ProductShape s{};
    s.count = s.slabs = 1;
    s.ldc = s.rows = s.cols = rows();
    s.lda = terms_.ld;
    s.ldb = products_.ld;
    s.depth = terms;
    return s;
  }

  /// An operand in the form that the wide products need.
  struct Operand {
    Buffer buffer;
    int ld;
  };
  Operand operand(Packing packing, const Buffer& x, int x_rows, int x_cols) {
    const bool turns = takes_transposed(params_) && packing == Packing::terms;
    if (!takes_packed(params_) && !turns) return {x, rows()};
    PackShape s{};
    s.count = 1;
    s.rows = x_rows;
    s.cols = x_cols;
    s.ld = rows();
    s.row_blocks = static_cast<int>(packed_blocks(x_rows));
    s.col_blocks = static_cast<int>(packed_blocks(x_cols));
    const ProductScales scales = product_scales(params_, 1, 1);
    const auto bytes =
        static_cast<std::size_t>(index_t{s.row_blocks} * s.col_blocks * packed_block_bytes);
    const Operand to{session_.context->allocate(bytes), turns ? 16 * s.row_blocks : s.col_blocks};
    if (turns) {
      transpose_operand(*launch_, s, packing, x, to.buffer);
      return to;
    }
    pack_operand(*launch_, s, packing, packing == Packing::products ? scales.b : scales.a, x,
                 to.buffer);
    return to;
  }

  template <class Launch>
  double seconds(Launch enqueue) {
    std::vector<double> times;
    for (int i = 0; i <= repeats; ++i) {
      const Event begun = queue_->mark();
      enqueue();
      const Event done = queue_->mark();
      queue_->finish();
      if (i > 0) times.push_back(seconds_between(begun, done));
    }
    std::nth_element(times.begin(), times.begin() + repeats / 2, times.end());
    return times[repeats / 2];
  }

  double peak() {
    const int groups = is_small_ ? 16 : 2112, steps = is_small_ ? 64 : 4096;
    const int body = params_.at("PRODUCT_BODY");
    const double terms = body == static_cast<int>(ProductBody::doubles) ? 4 : 16;
    const bool is_fma =
        body == static_cast<int>(ProductBody::fma) || body == static_cast<int>(ProductBody::floats);
    const double per_step = is_fma ? 256.0 * 16 : 8.0 * 8 * 16 * 8 * terms;
    const double products = body == static_cast<int>(ProductBody::three_halves) ? 3 : 1;
    return 2 * per_step * groups * steps / products /
           seconds([&] { (*launch_)("peak", groups, 256, c_, steps, 0.0F); });
  }

  /// Returns the relative error of checked x checked entries of 0 - A B.
  double error() {
    ProductShape s = shape(depth());
    s.rows = s.cols = checked;
    std::vector<T> result(host_.size());
    queue_->write(c_, result.data(), result.size() * sizeof(T));
    enqueue_subtract(*launch_, params_, ProductKind::wide, s, product_scales(params_, 1, 1),
                     terms_.buffer, products_.buffer, c_);
    queue_->read(c_, result.data(), result.size() * sizeof(T));
    const auto at = [this](int row, int col) {
      return static_cast<std::size_t>(row) * static_cast<std::size_t>(rows()) +
             static_cast<std::size_t>(col);
    };
    double off = 0, all = 0;
    for (int i = 0; i < checked; ++i) {
      for (int j = 0; j < checked; ++j) {
        double sum = 0;
        for (int k = 0; k < depth(); ++k) {
          sum += static_cast<double>(host_[at(i, k)]) * static_cast<double>(host_[at(k, j)]);
        }
        off += std::pow(sum + static_cast<double>(result[at(i, j)]), 2);
        all += sum * sum;
      }
    }
    return std::sqrt(off / all);
  }

  Session& session_;
  std::unique_ptr<Queue> queue_;
  bool is_small_;
  Params params_;
  KernelCache kernels_;
  std::optional<Launcher> launch_;
  std::vector<T> host_;
  Buffer a_, b_, c_;
  Operand terms_, columns_, products_;
};

}  // namespace

std::vector<ProductRate> measure_products(const DeviceInfo& device) {
  std::vector<ProductRate> rates;
  try {
    rates.push_back(Bench<float>(device, ProductBody::floats).measure("fma"));
    if (device.limits.has_nvidia_mma) {
      rates.push_back(
          Bench<float>(device, ProductBody::three_halves).measure("mma.sync, 3 x float16"));
      rates.push_back(Bench<float>(device, ProductBody::half).measure("mma.sync, float16"));
    }
    if (device.limits.has_float64) {
      rates.push_back(Bench<double>(device, ProductBody::fma).measure("fma"));
      if (device.limits.has_nvidia_mma) {
        rates.push_back(Bench<double>(device, ProductBody::doubles).measure("mma.sync, float64"));
      }
    }
  } catch (const DeviceFailure& failure) {
    throw_device_error(failure, device, "in a product");
  }
  return rates;
}

}  // namespace qrtool

// SPDX-License-Identifier: Apache-2.0
// gemm.cpp: prints a line for each body of the matrix products, beside the peak of its instruction.
#include "app/bench/timing/gemm.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/engine/opencl.hpp"
#include "app/process/console.hpp"
#include "app/run/backends/opencl_process.hpp"
#include "gpu/products/product_rates.hpp"

namespace qrtool {
namespace {

constexpr double tera = 1e12;

std::string line_of(const ProductRate& r) {
  return fmt::format("{:<24} {:<8} {:>9.4g} {:>9.4g} {:>5.0f} {:>9.4g} {:>5.0f} {:>9.2e}\n", r.body,
                     name_of(r.type), r.peak / tera, r.subtract / tera, 100 * r.subtract / r.peak,
                     r.transposed / tera, 100 * r.transposed / r.peak, r.error);
}

nlohmann::ordered_json json_of(const ProductRate& r) {
  return {{"body", r.body},
          {"type", name_of(r.type)},
          {"rows", r.rows},
          {"depth", r.depth},
          {"operations_per_second",
           {{"peak", r.peak}, {"subtract", r.subtract}, {"transposed", r.transposed}}},
          {"error", r.error}};
}

}  // namespace

ExitCode run_bench_gemm(const BenchOptions& o) {
  const DeviceInfo device = choose_opencl_devices(o.backend.device).front();
  const std::vector<ProductRate> rates = measure_products(device);
  if (o.json) {
    nlohmann::ordered_json bodies = nlohmann::ordered_json::array();
    for (const ProductRate& rate : rates) bodies.push_back(json_of(rate));
    write_stdout(nlohmann::ordered_json{{"schema", "qrtool.products/1"},
                                        {"version", QRTOOL_VERSION},
                                        {"device", device.text()},
                                        {"bodies", bodies}}
                     .dump(2) +
                 "\n");
    return ExitCode::good;
  }
  if (o.quiet || rates.empty()) return ExitCode::good;
  const ProductRate& first = rates.front();
  write_stdout(
      fmt::format("{}: C ({} x {}) -= A B and Z = A'C, {} columns of A; Tera-operations per "
                  "second and percent of the peak\n",
                  device.text(), first.rows, first.rows, first.depth));
  write_stdout(fmt::format("{:<24} {:<8} {:>9} {:>9} {:>5} {:>9} {:>5} {:>9}\n", "body", "type",
                           "peak", "C -= A B", "%", "Z = A'C", "%", "error"));
  for (const ProductRate& rate : rates) write_stdout(line_of(rate));
  return ExitCode::good;
}

}  // namespace qrtool

// SPDX-License-Identifier: Apache-2.0
// few_rows.cpp: qrtool_few_rows, a program that factors any number of small matrices on the CPU and
// prints the worst errors of each variant. few_rows_test.cpp runs a small part of the same
// matrices.
#include "tests/support/few_rows.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <mutex>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/parallel.hpp"

namespace qrtool::test {
namespace {

struct Options {
  std::vector<std::string> variants{"cpu/batched", "cpu/blocked", "cpu/eigen", "plan"};
  index_t matrices = 1000000;
  std::uint64_t seed = 1;
  int threads = 1;
};

template <class T>
WorstErrors run_shape(const FewRows& run) {
  try {
    return factor_few_rows<T>(run);
  } catch (const UsageError&) {
    return {};  // the variant does not take this shape
  }
}

void print(const std::string& name, const WorstErrors& worst) {
  fmt::print(
      "{:<32}{:>10} matrices {:>4} above, residual {:.3f}, orthogonality {:.3f} of the bar\n", name,
      worst.matrices, worst.above, worst.residual, worst.orthogonality);
  std::fflush(stdout);
}

/// Returns the worst errors of one variant and type over all shapes.
template <class T>
WorstErrors run_variant(const Options& o, const std::string& variant, const char* type) {
  const std::span<const AttackShape> shapes = few_rows_shapes();
  const index_t parts = 2 * std::ssize(shapes) * o.variants.size();
  std::mutex mutex;
  WorstErrors all;
  parallel_for(std::ssize(shapes), o.threads, [&](index_t s, int) {
    const AttackShape shape = shapes[static_cast<std::size_t>(s)];
    const WorstErrors worst = run_shape<T>({.variant = variant == "plan" ? "" : variant,
                                            .shape = shape,
                                            .matrices = o.matrices / parts + 1,
                                            .seed = o.seed});
    const std::lock_guard lock(mutex);
    print(fmt::format("{} {} {}x{}", variant, type, shape.m, shape.n), worst);
    all.include(worst);
  });
  return all;
}

int run(const Options& o) {
  WorstErrors total;
  std::vector<std::pair<std::string, WorstErrors>> lines;
  for (const std::string& variant : o.variants) {
    lines.emplace_back(variant + " float32", run_variant<float>(o, variant, "float32"));
    lines.emplace_back(variant + " float64", run_variant<double>(o, variant, "float64"));
  }
  fmt::print("\n");
  for (const auto& [name, worst] : lines) {
    print(name, worst);
    total.include(worst);
  }
  print("all", total);
  return total.above == 0 ? 0 : 1;
}

}  // namespace
}  // namespace qrtool::test

int main(int argc, char** argv) {
  using namespace qrtool::test;
  Options o;
  CLI::App app("Factors small matrices on the CPU and prints the worst errors in units of the bar");
  app.add_option("--matrices", o.matrices, "of all variants, types and shapes together");
  app.add_option("--variants", o.variants, "names, or 'plan': the plan's choice for one matrix");
  app.add_option("--seed", o.seed, "another seed gives other matrices");
  app.add_option("--threads", o.threads, "shapes at a time");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(o);
  } catch (const std::exception& error) {
    fmt::print(stderr, "qrtool_few_rows: {}\n", error.what());
    return 2;
  }
}

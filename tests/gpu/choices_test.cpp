// SPDX-License-Identifier: Apache-2.0
// choices_test.cpp: which variant a plan takes for 300 shapes, on an H100 and on the CPU, as
// written down in choices_*.csv beside this file. A new table of rates changes some:
// QRTOOL_WRITE_CHOICES=1 writes the files again, and the difference is for a person to read.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include "core/cpu/cpu_backend.hpp"
#include "core/plan/plan.hpp"
#include "gpu/registry.hpp"
#include "tests/support/measured_gpu.hpp"

namespace qrtool::test::choices_test {
namespace {

constexpr std::string_view head =
    "m,n,few,many,float32 Q few,float32 Q many,float32 R few,float32 R many,"
    "float32 V few,float32 V many,float32 LAPACK Q few,float32 LAPACK Q many,"
    "float64 Q few,float64 Q many,float64 R few,float64 R many,"
    "float64 V few,float64 V many,float64 LAPACK Q few,float64 LAPACK Q many\n";

/// A problem asks for one of these: Q and R, R alone, V and tau, or Q and R with LAPACK's signs.
constexpr std::pair<Mode, Sign> results[] = {{Mode::reduced, Sign::positive},
                                             {Mode::r, Sign::positive},
                                             {Mode::raw, Sign::lapack},
                                             {Mode::reduced, Sign::lapack}};

/// The variant's name without its backend.
std::string chosen(const Problem& p, std::span<const Variant> variants, const Limits& limits) {
  const Variant* const variant = least_costly(p, variants, limits);
  if (variant == nullptr) return "none";
  return std::string(variant->name.substr(variant->name.find('/') + 1));
}

/// The line of a shape: m, n, few, many, and the choices.
std::string line_of(index_t m, index_t n, index_t few, index_t many,
                    std::span<const Variant> variants, const Limits& limits) {
  std::string line = fmt::format("{},{},{},{}", m, n, few, many);
  for (const ElementType type : {ElementType::float32, ElementType::float64}) {
    for (const auto& [mode, sign] : results) {
      for (const index_t count : {few, many}) {
        const Problem p{.count = count, .m = m, .n = n, .type = type, .mode = mode, .sign = sign};
        line += "," + chosen(p, variants, limits);
      }
    }
  }
  return line + "\n";
}

void expect_choices(const std::string& name, std::span<const Variant> variants,
                    const Limits& limits) {
  const std::string path = QRTOOL_SOURCE_DIR "/tests/gpu/" + name;
  std::ifstream file(path);
  std::string line, text(head);
  std::getline(file, line);
  int shapes = 0;
  while (std::getline(file, line)) {
    ++shapes;
    std::istringstream fields(line);
    index_t m = 0, n = 0, few = 0, many = 0;
    char comma = ',';
    fields >> m >> comma >> n >> comma >> few >> comma >> many;
    const std::string now = line_of(m, n, few, many, variants, limits);
    EXPECT_EQ(now, line + "\n");
    text += now;
  }
  EXPECT_EQ(shapes, 300) << path;
  if (std::getenv("QRTOOL_WRITE_CHOICES") != nullptr) std::ofstream(path) << text;
}

TEST(Choices, OnAnH100) {
  expect_choices("choices_h100.csv", opencl_variants(), measured_gpu().limits);
}

TEST(Choices, OnTheCpu) {
  Limits limits;
  limits.host_bytes = std::size_t{16} << 30;
  expect_choices("choices_cpu.csv", cpu_variants(), limits);
}

}  // namespace
}  // namespace qrtool::test::choices_test

// SPDX-License-Identifier: Apache-2.0
// lapack_test.cpp: tests the calls of LAPACK, which library is named, and what a missing one says.
#include "app/bench/contestants/lapack.hpp"

#include <gtest/gtest.h>

#include "app/bench/contestants/lapack_systems.hpp"
#include "core/error.hpp"

namespace qrtool::lapack_test {
namespace {

/// Expects that a method finds x of a system with a known solution. `w` is its workspace.
template <class T>
void expect_known_solution(typename LapackSolver<T>::Workspace w, const LapackSolver<T>& solver,
                           bool (LapackSolver<T>::*solve)(const SystemSize&, T*, T*,
                                                          typename LapackSolver<T>::Workspace&)
                               const) {
  // Columns (1 1 1 1) and (0 1 2 3); b = 1 + 2 t and 3 - t, with residuals that A'r does not see.
  std::vector<T> a{1, 1, 1, 1, 0, 1, 2, 3};
  std::vector<T> b{2, 2, 4, 8, 3, 2, 1, 0};
  ASSERT_TRUE((solver.*solve)({.m = 4, .n = 2, .p = 2}, a.data(), b.data(), w));
  EXPECT_NEAR(b[0], 1, 1e-5);
  EXPECT_NEAR(b[1], 2, 1e-5);
  EXPECT_NEAR(b[4], 3, 1e-5);
  EXPECT_NEAR(b[5], -1, 1e-5);
}

TEST(LapackSolver, EveryMethodFindsAKnownSolution) {
  const LapackLibrary library = load_lapack("", {"gels", "gelsy", "syrk", "potrf"});
  if (library.file.empty()) GTEST_SKIP() << "no LAPACK";
  const auto check = [&]<class T>(const LapackSolver<T>& solver) {
    const auto workspace = solver.workspace({.m = 4, .n = 2, .p = 2});
    for (const auto solve :
         {&LapackSolver<T>::gels, &LapackSolver<T>::gelsy, &LapackSolver<T>::normal_equations})
      expect_known_solution<T>(workspace, solver, solve);
    std::vector<T> a{1, 1, 1, 1, 1, 1, 1, 1}, b{1, 2, 3, 4};
    auto w = workspace;
    EXPECT_FALSE(solver.normal_equations({.m = 4, .n = 2, .p = 1}, a.data(), b.data(), w))
        << "equal columns";
  };
  const LapackSolver<std::complex<double>> solver(library);
  auto workspace = solver.workspace({.m = 3, .n = 1, .p = 1});
  using C = std::complex<double>;
  std::vector<C> a{{0, 1}, {1, 0}, {1, 1}}, b{{-3, 2}, {2, 3}, {-1, 5}};  // b = (2 + 3i) a
  ASSERT_TRUE(solver.gels({.m = 3, .n = 1, .p = 1}, a.data(), b.data(), workspace));
  EXPECT_NEAR(std::abs(b[0] - C(2, 3)), 0, 1e-14);
  check(LapackSolver<float>(library));
  check(LapackSolver<double>(library));
}

TEST(Lapack, TheReferenceIsNamedAsUnoptimised) {
  const Limits limits{.host_bytes = std::size_t{1} << 28, .threads = 1};
  const std::string text = make_lapack(limits, "liblapack.so.3")->text();
  if (text == "not found") GTEST_SKIP() << "no liblapack.so.3";
  EXPECT_NE(text.find("liblapack.so.3"), std::string::npos) << text;
  const bool is_reference = text.starts_with("LAPACK ");
  EXPECT_TRUE(is_reference || text.starts_with("OpenBLAS ") || text.starts_with("MKL ")) << text;
  EXPECT_EQ(text.find("reference, unoptimised") != std::string::npos, is_reference) << text;
}

TEST(Lapack, TakesEveryType) {
  const auto lapack = make_lapack({.host_bytes = std::size_t{1} << 28, .threads = 2});
  if (lapack->text() == "not found") GTEST_SKIP() << "no LAPACK";
  for (const ElementType type : {ElementType::float32, ElementType::float64, ElementType::complex64,
                                 ElementType::complex128})
    for (const Mode mode : {Mode::reduced, Mode::r}) {
      const Problem p = problem_of({.m = 20, .n = 7, .batch = 5}, type, mode);
      EXPECT_GT(lapack->prepare(p, {}, 1)->run().factor, 0) << name_of(type);
    }
}

TEST(Lapack, AMissingLibraryIsNamed) {
  const Limits limits{.host_bytes = std::size_t{1} << 28, .threads = 1};
  const auto lapack = make_lapack(limits, "/nowhere/liblapack.so");
  EXPECT_EQ(lapack->text(), "not found");
  try {
    lapack->prepare({.count = 1, .m = 2, .n = 2}, {}, 1);
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find("/nowhere/liblapack.so"), std::string::npos);
  }
}

}  // namespace
}  // namespace qrtool::lapack_test

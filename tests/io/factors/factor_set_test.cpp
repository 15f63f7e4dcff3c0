// SPDX-License-Identifier: Apache-2.0
// factor_set_test.cpp: the files of one run are read, files of different runs are refused.
#include "io/factors/factor_set.hpp"

#include <bit>

#include "io/checksum/number_hash.hpp"
#include "io/open/factors.hpp"
#include "io/open/output.hpp"
#include "io/write/writer.hpp"
#include "tests/io/file_test.hpp"

namespace qrtool::factor_set_test {
namespace {

class FactorSetTest : public FileTest {
 protected:
  /// Matrices of T with Q = x, R = 2 x, then Q = x + 1, R = 2 x + 2: two, or for `count` 1 the
  /// first.
  template <class T = double>
  void write_run(const std::string& path, T x, index_t count = 2) {
    OutputSpec spec;
    spec.path = path;
    spec.force = true;
    spec.leading = {count};
    spec.datasets = {{"Q", element_type<T>, 1, 1}, {"R", element_type<T>, 1, 1}};
    spec.with_report = true;
    spec.report_columns = report_columns({});
    const auto writer = create_output(spec);
    const std::vector<T> q{x, x + 1}, r{2 * x, 2 * x + 2};
    writer->write("Q", 0, packed(q.data(), count, 1, 1));
    writer->write("R", 0, packed(r.data(), count, 1, 1));
    writer->write_report(0, std::vector<MatrixReport>(static_cast<std::size_t>(count)));
    writer->commit();
  }
  static std::string refusal() {
    return error_of<InputError>([] { open_factors("o.csv", Order::row); });
  }
  static std::string refusal_of(const std::string& files, int matrix,
                                const std::string& set = "o.csv",
                                const std::string& report = "o.report.csv") {
    return set + ": matrix " + std::to_string(matrix) + " of " + files + " is not the one that " +
           report +
           " describes | the files are of different runs, or were changed: factor again with "
           "--force, or remove " +
           report + " to have them measured as they are";
  }
};

/// A run that is killed between two renames can leave any mix of old and new files.
TEST_F(FactorSetTest, EveryMixOfTwoRunsIsRefused) {
  struct Form {
    const char *ending, *report;
    index_t count;
  };
  for (const auto& [ending, report, count] :
       {Form{".csv", ".report.csv", 2}, Form{".npy", ".report.json", 2},
        Form{".mtx", ".report.json", 1}}) {
    const std::string set = std::string("o") + ending, q = std::string(".Q") + ending,
                      r = std::string(".R") + ending;
    for (unsigned mix = 0; mix < 8; ++mix) {
      write_run(set, 1.0, count);
      write_run(std::string("p") + ending, 2.0, count);
      const std::string names[] = {q, r, report};
      for (unsigned i = 0; i < 3; ++i)
        if ((mix >> i & 1U) != 0) std::filesystem::rename("p" + names[i], "o" + names[i]);
      const std::string expected =
          mix == 0 || mix == 7 ? "no error"
                               : refusal_of("o" + q + ", o" + r, 0, set, std::string("o") + report);
      EXPECT_EQ(error_of<InputError>([&] { open_factors(set, Order::row); }), expected) << mix;
    }
  }
}

TEST_F(FactorSetTest, FilesOfTwoModesAreRefused) {
  write_run("o.csv", 1.0);
  write_text("o.V.csv", "1\n\n2\n");
  EXPECT_EQ(refusal(),
            "o.csv: o.Q.csv, o.R.csv, o.V.csv are files of different runs | remove those that you "
            "do not mean, or factor again with --force");
}

TEST_F(FactorSetTest, ADeletedQIsNotTakenForRAlone) {
  write_run("o.csv", 1.0);
  std::filesystem::remove("o.Q.csv");
  EXPECT_EQ(refusal(), refusal_of("o.R.csv", 0));
  std::filesystem::remove("o.report.csv");
  EXPECT_TRUE(open_factors("o.csv", Order::row).r);
}

TEST_F(FactorSetTest, NumbersCountAndNotTheirText) {
  write_run("o.csv", 0.1);
  const std::string text = read_text("o.Q.csv");
  ASSERT_EQ(text, "# matrix 0\n0.1\n\n# matrix 1\n1.1\n");
  write_text("o.Q.csv", "q\r\n0.10\r\n\r\n+1.1e0\r\n");
  EXPECT_TRUE(open_factors("o.csv", Order::row).q);
  write_text("o.Q.csv", "0.1\n\n1.1000000000000003\n");
  EXPECT_EQ(refusal(), refusal_of("o.Q.csv, o.R.csv", 1));
  write_text("o.Q.csv", "0.1\n");
  write_text("o.R.csv", "0.2\n");
  EXPECT_EQ(refusal(), refusal_of("o.Q.csv, o.R.csv", 1)) << "a matrix is missing";
}

TEST_F(FactorSetTest, SingleNumbersAndSpecialOnesAgree) {
  write_run<float>("o.csv", 0.1f);
  EXPECT_TRUE(open_factors("o.csv", Order::row).q);
  for (const double x : {-0.0, -std::numeric_limits<double>::quiet_NaN(), 5e-324,
                         -std::numeric_limits<double>::infinity()}) {
    write_run("o.csv", x);
    EXPECT_TRUE(open_factors("o.csv", Order::row).q) << x;
  }
}

TEST_F(FactorSetTest, OtherReportsAreNoConcern) {
  write_run("o.csv", 1.0);
  for (const char* report : {"", "a,b\n1,2\n", "matrix,residual\n0,1\n1,1\n"}) {
    write_text("o.report.csv", report);
    EXPECT_TRUE(open_factors("o.csv", Order::row).q) << report;
  }
  write_text("o.report.csv", "matrix,checksum\n0,0x1\n1\n");
  EXPECT_EQ(refusal(), refusal_of("o.Q.csv, o.R.csv", 0));
}

TEST_F(FactorSetTest, FactorsThatAreNotThere) {
  EXPECT_EQ(error_of<InputError>([] { open_factors("out.csv", Order::row); }),
            "cannot read 'out.R.csv': there is no such file | out.csv stands for the files "
            "out.Q.csv, out.R.csv and others, as factor writes them");
  write_text("out.Q.csv", "1,2\n");
  write_text("out.R.csv", "1,2\n");
  EXPECT_EQ(error_of<InputError>([] { open_factors("out.csv", Order::row); }),
            "out.csv: Q (1x2) and R (1x2) do not belong together");
}

TEST_F(FactorSetTest, OneFileOfASetIsNotTheSet) {
  write_run("o.csv", 1.0);
  for (const char* name : {"o.Q.csv", "o.report.csv"}) {
    const std::string stem = std::string(name).substr(0, std::string(name).size() - 4);
    EXPECT_EQ(error_of<InputError>([&] { open_factors(name, Order::row); }),
              "cannot read '" + stem +
                  ".R.csv': there is no such file | name all of them together: "
                  "o.csv");
  }
}

/// Every bit of every number and the order count.
TEST(NumberHash, EveryBitCounts) {
  const auto hash_of = [](std::uint64_t first, std::uint64_t second) {
    NumberHash hash;
    hash.add_word(first);
    hash.add_word(second);
    return hash.value();
  };
  const std::uint64_t expected = hash_of(0, 0);
  for (int bit = 0; bit < 64; ++bit) {
    const std::uint64_t one = std::uint64_t{1} << bit;
    EXPECT_NE(hash_of(one, 0), expected);
    EXPECT_NE(hash_of(0, one), expected);
    EXPECT_NE(hash_of(one, one), expected) << "two changes do not cancel";
    EXPECT_NE(hash_of(one, 0), hash_of(0, one));
  }
}

}  // namespace
}  // namespace qrtool::factor_set_test

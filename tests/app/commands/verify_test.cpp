// SPDX-License-Identifier: Apache-2.0
// verify_test.cpp: `qrtool verify` must find every planted fault and must not report any other.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "io/hdf5/structure/file.hpp"
#include "io/open/output.hpp"
#include "io/write/writer.hpp"
#include "tests/support/run_tool.hpp"

namespace qrtool::test::verify_test {
namespace {

using Strings = std::vector<std::string>;
using Matrix = MatrixView<double>;

constexpr index_t count = 20, m = 12, n = 8;

/// Makes good factors of `count` matrices, which a test damages.
class Verify : public testing::Test {
 protected:
  Verify() {
    write_matrices<double>(a_, {count}, make_matrices<double>("gauss", count, m, n).view());
    EXPECT_EQ(run_tool({"factor", a_, q_, "-q"}).exit_code, 0);
    Q = read_dataset(q_, "/Q");
    R = read_dataset(q_, "/R");
  }

  ToolResult verify(const Strings& more = {}) const {
    Strings arguments{"verify", a_, foreign_};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_tool(arguments);
  }
  ToolResult verify_damaged(const Strings& more = {}) const {
    write_factors<double>(foreign_, {count}, Q.view(), R.view());
    return verify(more);
  }

  TemporaryDirectory dir_;
  std::string a_ = dir_ / "a.h5", q_ = dir_ / "q.h5", foreign_ = dir_ / "foreign.h5";
  Stored Q, R;
};

/// Takes an object out of an HDF5 file, and may put an empty group in its place.
void delete_object(const std::string& file, const char* name, bool with_group = false) {
  const hdf5::Session session;
  const hdf5::Handle opened(H5Fopen(file.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
  ASSERT_GE(H5Ldelete(opened, name, H5P_DEFAULT), 0);
  if (!with_group) return;
  hdf5::Handle(H5Gcreate2(opened, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
}

TEST_F(Verify, GoodFactorsPass) {
  const ToolResult own = run_tool({"verify", a_, q_});
  EXPECT_EQ(own.exit_code, 0);
  EXPECT_EQ(own.err, "");
  const testing::Matcher<std::string> expected = testing::MatchesRegex(
      R"(worst residual \S+ \(0\.\S+ of its bar, matrix [0-9]+\), orthogonality \S+ \(0\.\S+, matrix [0-9]+\), lower 0; u = 2\^-52)"
      "\n"
      R"(verified 20 matrices of \S*/q\.h5: all 20 pass)"
      "\n");
  EXPECT_TRUE(expected.Matches(own.out)) << own.out;
  EXPECT_EQ(verify_damaged().exit_code, 0) << "the same numbers in a foreign file";
  EXPECT_EQ(run_tool({"verify", a_, q_, "--quiet"}).out, "");
}

void transpose_square_part(Matrix q) {
  for (index_t i = 0; i < n; ++i)
    for (index_t j = 0; j < i; ++j) std::swap(q(i, j), q(j, i));
}

/// Applies the reflection that maps e_0 to -e_0. Q and R stay factors of A, but R is not a triangle
/// any more.
void rotate_pair(Matrix q, Matrix r) {
  const double c = std::sqrt(0.5);
  for (index_t i = 0; i < q.rows; ++i) {
    const double x = q(i, 0), y = q(i, 1);
    q(i, 0) = c * (x - y);
    q(i, 1) = c * (x + y);
  }
  for (index_t j = 0; j < r.cols; ++j) {
    const double x = r(0, j), y = r(1, j);
    r(0, j) = c * (x - y);
    r(1, j) = c * (x + y);
  }
}

struct Fault {
  const char* name;
  std::function<void(BatchView<double> q, BatchView<double> r)> plant;
  index_t failing = 1;
};

const std::vector<Fault> faults{
    {"one element of Q off by 2^-10", [](auto q, auto) { q[7](3, 2) += 0x1p-10; }},
    {"one element of Q off by 2^-44", [](auto q, auto) { q[7](3, 2) += 0x1p-44; }},
    {"one element of R off by 2^-10", [](auto, auto r) { r[7](2, 5) += 0x1p-10; }},
    {"column of Q negated, row of R not",
     [](auto q, auto) {
       for (index_t i = 0; i < m; ++i) q[7](i, 4) *= -1;
     }},
    {"row of R negated, column of Q not",
     [](auto, auto r) {
       for (index_t j = 0; j < n; ++j) r[7](4, j) *= -1;
     }},
    {"Q is the identity",
     [](auto q, auto) {
       for (index_t i = 0; i < m; ++i)
         for (index_t j = 0; j < n; ++j) q[7](i, j) = i == j;
     }},
    {"Q from another matrix", [](auto q, auto) { std::copy_n(q[3].data, m * n, q[7].data); }},
    {"transposed Q", [](auto q, auto) { transpose_square_part(q[7]); }},
    {"two matrices swapped",
     [](auto q, auto r) {
       std::swap_ranges(q[7].data, q[7].data + m * n, q[8].data);
       std::swap_ranges(r[7].data, r[7].data + n * n, r[8].data);
     },
     2},
    {"NaN in Q", [](auto q, auto) { q[7](11, 7) = std::nan(""); }},
    {"NaN in R", [](auto, auto r) { r[7](0, 7) = std::nan(""); }},
    {"NaN below the diagonal of R", [](auto, auto r) { r[7](7, 0) = std::nan(""); }},
    {"Inf in R", [](auto, auto r) { r[7](1, 1) = std::numeric_limits<double>::infinity(); }},
    {"R not triangular", [](auto q, auto r) { rotate_pair(q[7], r[7]); }},
    {"the last matrix",
     [](auto q, auto) {
       q[7](0, 0) += 1;
       q[count - 1](0, 0) += 1;
     },
     2},
    {"Q = 0 and R = 0",
     [](auto q, auto r) {
       std::fill_n(q[7].data, m * n, 0.0);
       std::fill_n(r[7].data, n * n, 0.0);
     }},
    {"Q scaled by 2, R by 1/2",
     [](auto q, auto r) {
       for (index_t i = 0; i < m * n; ++i) q[7].data[i] *= 2;
       for (index_t i = 0; i < n * n; ++i) r[7].data[i] /= 2;
     }},
};

TEST_F(Verify, FindsEveryPlantedFault) {
  for (const Fault& fault : faults) {
    std::copy_n(read_dataset(q_, "/Q").view().data, count * m * n, Q.view().data);
    std::copy_n(read_dataset(q_, "/R").view().data, count * n * n, R.view().data);
    fault.plant(Q.view(), R.view());
    for (const Strings& more :
         std::vector<Strings>{{}, {"--memory", "20KiB"}, {"--threads", "1"}}) {
      const ToolResult result = verify_damaged(more);
      EXPECT_EQ(result.exit_code, 1) << fault.name;
      EXPECT_NE(result.out.find("\nmatrix 7 fails: "), std::string::npos) << fault.name << "\n"
                                                                          << result.out;
      EXPECT_TRUE(result.out.ends_with("verified 20 matrices of " + foreign_ + ": " +
                                       std::to_string(20 - fault.failing) + " of 20 pass, " +
                                       std::to_string(fault.failing) + " above the bar\n"))
          << fault.name << "\n"
          << result.out;
    }
  }
}

TEST_F(Verify, SaysWhereTheFactorsAreNotFinite) {
  Q.view()[7](11, 7) = std::numeric_limits<double>::infinity();
  R.view()[8](1, 1) = -std::numeric_limits<double>::infinity();
  const std::string text = verify_damaged().out;
  for (const char* matrix : {"7", "8"})
    EXPECT_NE(text.find(std::string("matrix ") + matrix + " fails: its factors hold NaN or Inf\n"),
              std::string::npos)
        << text;
}

TEST_F(Verify, FirstColumnOfQZeroIsNotHiddenByAZeroRow) {
  // A = e_1, Q = e_2, R = 0 passes R - Q'A and Q'Q - I.
  const Batch<double> a(1, 2, 1), q(1, 2, 1), r(1, 1, 1);
  a.view()[0](0, 0) = q.view()[0](1, 0) = 1;
  a.view()[0](1, 0) = q.view()[0](0, 0) = r.view()[0](0, 0) = 0;
  write_matrices<double>(a_, {}, a.view());
  write_factors<double>(foreign_, {}, q.view(), r.view());
  EXPECT_EQ(verify().exit_code, 1);
}

TEST_F(Verify, SmallFaultsInSinglePrecisionAreWithinTheBar) {
  const index_t size = count * m * n;
  const Batch<float> q(count, m, n), r(count, n, n);
  std::copy_n(Q.view().data, size, q.view().data);
  std::copy_n(R.view().data, count * n * n, r.view().data);
  write_factors<float>(foreign_, {count}, q.view(), r.view());
  const ToolResult result = verify();
  EXPECT_EQ(result.exit_code, 0) << "u comes from the stored type: " << result.out;
  EXPECT_NE(result.out.find("u = 2^-23"), std::string::npos) << result.out;
}

TEST_F(Verify, NonFiniteMatrixFails) {
  const Batch<double> a = make_matrices<double>("gauss", count, m, n);
  a.view()[4](0, 0) = std::nan("");
  write_matrices<double>(a_, {count}, a.view());
  const ToolResult result = verify_damaged();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.out.find("matrix 4 fails: it holds NaN or Inf\n"), std::string::npos)
      << result.out;
}

TEST_F(Verify, ListsTenFailuresOrAllMatrices) {
  for (index_t b = 0; b < count; ++b) Q.view()[b](0, 0) += 1;
  const auto lines_with = [](const std::string& text, const std::string& word) {
    index_t lines = 0;
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
      ++lines;
    return lines;
  };
  const std::string first = verify_damaged().out;
  EXPECT_EQ(lines_with(first, " fails: "), 10);
  EXPECT_NE(first.find("and 10 more; --all lists them\n"), std::string::npos) << first;
  EXPECT_EQ(lines_with(verify({"--all"}).out, " fails: "), 20);
  EXPECT_EQ(lines_with(run_tool({"verify", a_, q_, "--all"}).out, " passes: "), 20);
  const ToolResult quiet = verify({"--quiet"});
  EXPECT_EQ(quiet.out, "");
  EXPECT_EQ(quiet.err,
            "qrtool: verified 20 matrices of " + foreign_ + ": 0 of 20 pass, 20 above the bar\n");
  EXPECT_EQ(quiet.exit_code, 1);
}

TEST_F(Verify, JsonIsOneDocument) {
  Q.view()[7](0, 0) = std::nan("");
  Q.view()[9](0, 0) += 1;
  const auto json = nlohmann::json::parse(verify_damaged({"--json"}).out);
  EXPECT_EQ(json["schema"], "qrtool.verify/1");
  EXPECT_EQ(json["check"]["failed"], 2);
  EXPECT_EQ(json["first_failures"].size(), 2u);
  EXPECT_EQ(json["first_failures"][0]["matrix"], 7);
  EXPECT_TRUE(json["first_failures"][0]["residual"]["error"].is_null()) << "NaN is null";
  EXPECT_GT(json["first_failures"][1]["orthogonality"]["ratio"], 1e6);
  EXPECT_EQ(json["exit"], 1);
  EXPECT_EQ(nlohmann::json::parse(verify({"--json", "--all"}).out)["all_matrices"].size(), 20u);
}

// The third matrix has a wrong Q, the second one an error that passes, but not with its bound.
TEST_F(Verify, ProbeFindsWhatTheCheckFinds) {
  const Batch<double> a = make_matrices<double>("gauss", 3, 200, 200);
  write_matrices<double>(a_, {3}, a.view());
  ASSERT_EQ(run_tool({"factor", a_, q_, "-qf"}).exit_code, 0);
  Q = read_dataset(q_, "/Q");
  R = read_dataset(q_, "/R");
  const double bar = 0x1p-52 * 200;
  for (index_t i = 0; i < 200; ++i) Q.view()[1](i, 7) *= 1 + 0.3 * bar;
  Q.view()[2](3, 199) += 1e-3;
  write_factors<double>(foreign_, {3}, Q.view(), R.view());
  const auto full = nlohmann::json::parse(verify({"--json", "--all"}).out);
  const ToolResult found = verify({"--json", "--all", "--check", "probe"});
  EXPECT_EQ(found.exit_code, 1);
  const auto probe = nlohmann::json::parse(found.out);
  EXPECT_EQ(full["check"]["kind"], "full");
  EXPECT_EQ(probe["check"]["kind"], "probe");
  const auto error = [](const nlohmann::json& json, int matrix) {
    return json["all_matrices"][matrix]["orthogonality"]["error"].get<double>();
  };
  EXPECT_NE(error(probe, 0), error(full, 0));
  EXPECT_NEAR(error(probe, 0), error(full, 0), 0.2 * error(full, 0));
  EXPECT_EQ(error(probe, 1), error(full, 1)) << "measured";
  EXPECT_EQ(error(probe, 2), error(full, 2)) << "measured";
  EXPECT_EQ(probe["check"]["passed"], 2);
  const std::string said =
      "\nthese errors are estimates, except those of matrices close to a bar\n";
  EXPECT_NE(verify({"--check", "probe"}).out.find(said), std::string::npos);
  EXPECT_EQ(verify({}).out.find(said), std::string::npos);
  EXPECT_EQ(run_tool({"verify", a_, q_, "--check", "none"}).exit_code, 2);
}

// The second matrix has an error that passes, but not with its bound.
TEST_F(Verify, ProbeFindsByRowsWhatTheCheckFinds) {
  const Batch<double> a = make_matrices<double>("gauss", 2, 3000, 200);
  write_matrices<double>(a_, {2}, a.view());
  ASSERT_EQ(run_tool({"factor", a_, q_, "-qf"}).exit_code, 0);
  Q = read_dataset(q_, "/Q");
  R = read_dataset(q_, "/R");
  for (index_t i = 0; i < 3000; ++i) Q.view()[1](i, 7) *= 1 + 0.3 * 0x1p-52 * 3000;
  write_factors<double>(foreign_, {2}, Q.view(), R.view());
  const auto found = [&](const std::string& check, const std::string& memory) {
    const ToolResult result =
        verify({"--json", "--all", "--check", check, "--memory", memory, "--progress", "always"});
    EXPECT_EQ(result.err.find("rows") != std::string::npos, memory == "8MiB") << result.err;
    EXPECT_EQ(result.err.find("15,000/12,000"), std::string::npos)
        << "reading again is no progress";
    const auto json = nlohmann::json::parse(result.out);
    EXPECT_EQ(json["check"]["kind"], check);
    EXPECT_EQ(json["check"]["passed"], 2);
    return std::vector<double>{
        json["all_matrices"][0]["orthogonality"]["error"].get<double>(),
        json["all_matrices"][1]["orthogonality"]["error"].get<double>(),
    };
  };
  const std::vector<double> full = found("full", "8MiB"), probe = found("probe", "8MiB");
  EXPECT_NE(probe[0], full[0]);
  EXPECT_NEAR(probe[0], full[0], 0.2 * full[0]);
  EXPECT_EQ(probe[1], full[1]) << "measured";
  EXPECT_EQ(probe, found("probe", "1GiB"));
}

TEST_F(Verify, PublishedCriteria) {
  Q.view()[7](3, 2) += 0x1p-30;
  EXPECT_EQ(verify_damaged().exit_code, 1);
  const ToolResult result = verify({"--criteria", "m-eps"});
  EXPECT_EQ(result.exit_code, 0) << "12 x 2^-23 is allowed there";
  EXPECT_NE(result.out.find("bars m 2^-23"), std::string::npos);
}

TEST_F(Verify, ReportFile) {
  EXPECT_EQ(run_tool({"verify", a_, q_, "--report", dir_ / "r.csv", "-q"}).exit_code, 0);
  const std::string text = read_text(dir_ / "r.csv");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 21);
  EXPECT_EQ(run_tool({"verify", a_, q_, "--report", dir_ / "r.csv", "-q"}).exit_code, 5);
  EXPECT_EQ(run_tool({"verify", a_, q_, "--report", q_, "-qf"}).exit_code, 2);
}

TEST_F(Verify, RAloneIsTheWeakerCheckAndSaysSo) {
  EXPECT_EQ(run_tool({"factor", a_, q_, "-fq", "--mode", "r"}).exit_code, 0);
  const ToolResult good = run_tool({"verify", a_, q_});
  EXPECT_EQ(good.exit_code, 0);
  EXPECT_NE(good.out.find("a weaker check"), std::string::npos);
  EXPECT_EQ(good.out.find("orthogonality"), std::string::npos);

  const Stored r = read_dataset(q_, "/R");
  r.view()[7](2, 5) += 0x1p-10;
  // The dataset is named A there. The name does not matter for what is measured.
  const auto write_r = [&] {
    OutputSpec spec;
    spec.path = foreign_;
    spec.force = true;
    spec.leading = {count};
    spec.datasets = {{"R", ElementType::float64, n, n}};
    const auto writer = create_output(spec);
    writer->write("R", 0, BatchView<const double>(r.view()));
    writer->commit();
  };
  write_r();
  const ToolResult bad = verify();
  EXPECT_EQ(bad.exit_code, 1);
  EXPECT_NE(bad.out.find("matrix 7 fails"), std::string::npos) << bad.out;
}

TEST_F(Verify, ReflectorsOfEveryShape) {
  for (const auto& [rows, cols] : {std::pair<index_t, index_t>{9, 5}, {5, 9}, {6, 6}, {1, 1}}) {
    write_matrices<float>(a_, {3}, make_matrices<float>("gauss", 3, rows, cols).view());
    EXPECT_EQ(run_tool({"factor", a_, q_, "-fq", "--mode", "raw"}).exit_code, 0);
    EXPECT_EQ(run_tool({"verify", a_, q_}).exit_code, 0);
    const Stored v = read_dataset(q_, "/V"), tau = read_dataset(q_, "/tau");
    OutputSpec spec;
    spec.path = foreign_;
    spec.force = true;
    spec.leading = {3};
    spec.datasets = {{"V", ElementType::float32, rows, cols},
                     {"tau", ElementType::float32, 1, std::min(rows, cols), true}};
    const auto writer = create_output(spec);
    v.view()[1](0, 0) += 0.5;
    const double* tau_data = tau.view().data;
    const index_t k = std::min(rows, cols);
    const std::vector<float> v_values(v.view().data, v.view().data + 3 * rows * cols);
    const std::vector<float> tau_values(tau_data, tau_data + 3 * k);
    writer->write("V", 0, packed(v_values.data(), 3, rows, cols));
    writer->write("tau", 0, packed(tau_values.data(), 3, 1, k));
    writer->commit();
    const ToolResult bad = verify();
    EXPECT_EQ(bad.exit_code, 1);
    EXPECT_NE(bad.out.find("matrix 1 fails"), std::string::npos) << bad.out;
  }
}

TEST_F(Verify, AMatrixLargerThanTheMemoryIsStreamed) {
  const index_t rows = 60000, cols = 12;
  write_matrices<double>(a_, {2}, make_matrices<double>("gauss", 2, rows, cols).view());
  EXPECT_EQ(run_tool({"factor", a_, q_, "-fq"}).exit_code, 0);
  const Strings small{"verify", a_, q_, "--memory", "10MiB", "--all"};
  const ToolResult streamed = run_tool(small);
  EXPECT_EQ(streamed.exit_code, 0) << streamed.err;
  EXPECT_EQ(streamed.out, run_tool({"verify", a_, q_, "--all"}).out)
      << "the same numbers however the rows are handed in";
  for (const char* threads : {"1", "3"}) {
    Strings shared = small;
    shared.insert(shared.end(), {"--threads", threads, "--progress", "always"});
    const ToolResult result = run_tool(shared);
    EXPECT_EQ(result.out, streamed.out) << "the same numbers on " << threads << " threads";
    // A is read twice. The line appears while the first matrix is measured.
    EXPECT_NE(result.err.find("/240,000"), std::string::npos) << result.err;
    EXPECT_NE(result.err.find("240,000/240,000"), std::string::npos) << result.err;
  }
  Stored q = read_dataset(q_, "/Q");
  const Stored r = read_dataset(q_, "/R");
  for (const double damage : {0x1p-10, std::numeric_limits<double>::infinity()}) {
    q.view()[1](59999, 11) += damage;
    write_factors<double>(foreign_, {2}, q.view(), r.view());
    const ToolResult bad = verify({"--memory", "10MiB"});
    EXPECT_EQ(bad.exit_code, 1);
    EXPECT_NE(bad.out.find("matrix 1 fails"), std::string::npos) << bad.out;
    EXPECT_EQ(bad.out.find("NaN") != std::string::npos, std::isinf(damage)) << bad.out;
  }
  EXPECT_EQ(run_tool({"verify", a_, q_, "--memory", "2KiB"}).exit_code, 6);
}

TEST_F(Verify, ShapesThatDoNotFitAreAnInputError) {
  write_matrices<double>(a_, {count}, make_matrices<double>("gauss", count, m, n + 1).view());
  const ToolResult result = verify_damaged();
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.err, "qrtool: " + foreign_ +
                            ": the shapes do not fit: A is 20x12x9, Q 20x12x8, R 20x8x8\n"
                            "hint: for this A reduced factors are Q 20x12x9 and R 20x9x9\n");
  write_matrices<double>(a_, {count - 1}, make_matrices<double>("gauss", count - 1, m, n).view());
  EXPECT_EQ(verify().exit_code, 3) << "another number of matrices";
}

TEST_F(Verify, TransposedQGetsAHint) {
  const Batch<double> q(count, n, m), r(count, n, n);
  std::fill_n(q.view().data, count * n * m, 0.0);
  std::fill_n(r.view().data, count * n * n, 0.0);
  write_factors<double>(foreign_, {count}, q.view(), r.view());
  const ToolResult result = verify();
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_NE(result.err.find("hint: they belong together with --order column"), std::string::npos)
      << result.err;
}

TEST_F(Verify, MissingFilesAndFactorsAreInputErrors) {
  EXPECT_EQ(run_tool({"verify", dir_ / "none.h5", q_}).exit_code, 3);
  EXPECT_EQ(run_tool({"verify", a_, dir_ / "none.h5"}).exit_code, 3);
  EXPECT_EQ(run_tool({"verify", a_, a_}).exit_code, 3) << "holds no factors";
}

TEST_F(Verify, OrderAndDatasetAreThoseThatTheFactorsRecord) {
  const std::string square = dir_ / "square.h5";
  write_matrices<float>(square, {}, make_matrices<float>("gauss", 1, 6, 6).view());
  ASSERT_EQ(run_tool({"factor", square, q_, "-fq", "--order", "column"}).exit_code, 0);
  const ToolResult good = run_tool({"verify", square, q_});
  EXPECT_EQ(good.exit_code, 0) << good.out;
  EXPECT_EQ(good.err, "");
  const ToolResult other = run_tool({"verify", square, q_, "--order", "row"});
  EXPECT_EQ(other.exit_code, 1) << "explicit options win";
  EXPECT_EQ(other.err, "qrtool: note: " + q_ + " was made from the order column, not from row\n");

  // Of a file with two datasets the recorded one is taken.
  ASSERT_EQ(run_tool({"factor", a_, q_, "-fq"}).exit_code, 0);
  ASSERT_EQ(run_tool({"factor", q_ + ":/R", foreign_, "-fq"}).exit_code, 0);
  const ToolResult chosen = run_tool({"verify", q_, foreign_});
  EXPECT_EQ(chosen.exit_code, 0) << chosen.err;
  EXPECT_EQ(chosen.err, "");
  const ToolResult wrong = run_tool({"verify", q_ + ":/Q", foreign_});
  EXPECT_EQ(wrong.exit_code, 3) << "other shapes";
  EXPECT_NE(wrong.err.find("was made from the dataset /R, not from /Q\n"), std::string::npos)
      << wrong.err;
}

TEST_F(Verify, AnotherFileThanTheRecordedOneIsMentioned) {
  ASSERT_EQ(run_tool({"factor", a_, q_, "-fq"}).exit_code, 0);
  const std::string copy = dir_ / "copy.h5";
  std::filesystem::copy_file(a_, copy);
  const ToolResult result = run_tool({"verify", copy, q_});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "qrtool: note: " + q_ + " was made from the file a.h5, not from copy.h5\n");
  EXPECT_EQ(run_tool({"verify", copy, q_, "-q"}).err, "");
  // The numbers of Q stand under another name, and as text.
  ASSERT_EQ(run_tool({"factor", q_ + ":/Q", foreign_, "-fq"}).exit_code, 0);
  const Stored q = read_dataset(q_, "/Q");
  write_matrices<double>(copy, {count}, q.view());
  EXPECT_NE(run_tool({"verify", copy, foreign_}).err.find("the dataset /Q, not from /A"),
            std::string::npos);
}

TEST_F(Verify, FactorsAreNotNamedInTheirFile) {
  const ToolResult result = run_tool({"verify", a_, q_ + ":/Q"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_NE(result.err.find("hint: name the file alone: " + q_ + "\n"), std::string::npos)
      << result.err;
}

TEST_F(Verify, DenormalNumbersHaveTheBarsThatFactorHeldThemTo) {
  const Batch<float> denormal = make_matrices<float>("gauss", count, m, n);
  for (index_t b = 0; b < count; ++b) {
    for (index_t i = 0; i < m * n; ++i) denormal.view()[b].data[i] *= 1e-42F;
  }
  write_matrices<float>(a_, {count}, denormal.view());
  const ToolResult factored = run_tool({"factor", a_, q_, "-f", "--json"});
  const ToolResult verified = run_tool({"verify", a_, q_, "--json"});
  ASSERT_EQ(factored.exit_code + verified.exit_code, 0) << factored.err << verified.err;
  const auto worst_of = [](const ToolResult& result) {
    return nlohmann::json::parse(result.out)["check"]["worst"]["residual"];
  };
  const auto ours = worst_of(factored), theirs = worst_of(verified);
  EXPECT_EQ(ours["matrix"], theirs["matrix"]);
  EXPECT_NEAR(ours["ratio"].get<double>(), theirs["ratio"].get<double>(),
              1e-6 * theirs["ratio"].get<double>());
}

TEST_F(Verify, AnOutputThatLacksFactorsOfItsModeIsRefused) {
  for (const auto& [mode, name] : {std::pair("reduced", "Q"), std::pair("complete", "R"),
                                   std::pair("raw", "tau"), std::pair("r", "R")}) {
    ASSERT_EQ(run_tool({"factor", a_, q_, "-qf", "--mode", mode}).exit_code, 0);
    delete_object(q_, name);
    const ToolResult result = run_tool({"verify", a_, q_});
    EXPECT_EQ(result.exit_code, 3) << result.out;
    EXPECT_NE(
        result.err.find(std::string("was written with mode ") + mode + ", but holds no " + name),
        std::string::npos)
        << result.err;
  }
}

TEST_F(Verify, AGroupInThePlaceOfQIsRefused) {
  write_factors<double>(foreign_, {count}, Q.view(), R.view());
  delete_object(foreign_, "Q", true);
  const ToolResult result = verify();
  EXPECT_EQ(result.exit_code, 3) << result.out;
  EXPECT_NE(result.err.find("/Q is no dataset"), std::string::npos) << result.err;
}

TEST_F(Verify, FilesInTheWrongOrderAreSaidToBe) {
  const ToolResult swapped = run_tool({"verify", q_, a_});
  EXPECT_EQ(swapped.exit_code, 3);
  EXPECT_NE(swapped.err.find("hint: the matrices come first, then the factors: qrtool verify " +
                             a_ + " " + q_ + "\n"),
            std::string::npos)
      << swapped.err;
  const ToolResult no_matrices = run_tool({"verify", q_, q_});
  EXPECT_EQ(no_matrices.exit_code, 3);
  EXPECT_NE(no_matrices.err.find("choose one, as in " + q_ + ":/Q\n"), std::string::npos)
      << no_matrices.err;
}

}  // namespace
}  // namespace qrtool::test::verify_test

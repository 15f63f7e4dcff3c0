// SPDX-License-Identifier: Apache-2.0
// report_file_test.cpp: the report as CSV and JSON.
#include "io/report/report_file.hpp"

#include <nlohmann/json.hpp>

#include "tests/io/file_test.hpp"

namespace qrtool::report_file_test {
namespace {

class ReportFileTest : public FileTest {
 protected:
  const std::vector<MatrixReport> lines_{
      {1.25e-7, 0.1, 0, 0.5, Status::ok, -3, Route::reflectors, 2},
      {not_measured, not_measured, not_measured, not_measured, Status::non_finite, 0},
      {1e300, 2, 3, 1, Status::above_bar, 129}};

  void write(const std::string& name) {
    const auto file = create_report_file(name, false, report_columns({}));
    file->write(std::span(lines_).first(1));
    file->write(std::span(lines_).subspan(1));
    EXPECT_FALSE(std::filesystem::exists(name));
    file->commit();
  }
};

TEST_F(ReportFileTest, Csv) {
  write("r.csv");
  EXPECT_EQ(read_text("r.csv"),
            "matrix,residual,orthogonality,lower,diagonal_ratio,status,scale,tries\n"
            "0,1.25e-07,0.1,0,0.5,0,-3,2\n"
            "1,nan,nan,nan,nan,2,0,1\n"
            "2,1e+300,2,3,1,1,129,1\n");
}

TEST_F(ReportFileTest, RankAndConditionWhereTheyAreAskedFor) {
  const std::vector<ReportColumn> columns =
      report_columns({.pivots = true, .wants_condition = true});
  const MatrixReport line{.rank = 3, .condition = 1e5}, none;
  for (const char* name : {"r.csv", "r.json"}) {
    const auto file = create_report_file(name, false, columns);
    file->write({&line, 1});
    file->write({&none, 1});
    file->commit();
  }
  EXPECT_EQ(read_text("r.csv"),
            "matrix,residual,orthogonality,lower,diagonal_ratio,status,scale,tries,rank,condition\n"
            "0,nan,nan,nan,nan,4,0,1,3,100000\n"
            "1,nan,nan,nan,nan,4,0,1,-1,nan\n");
  const auto json = nlohmann::json::parse(read_text("r.json"));
  EXPECT_EQ(json["matrices"][0]["rank"], 3);
  EXPECT_EQ(json["matrices"][1]["rank"], -1);
  EXPECT_TRUE(json["matrices"][1]["condition"].is_null());
}

TEST_F(ReportFileTest, Json) {
  write("r.json");
  const auto json = nlohmann::json::parse(read_text("r.json"));
  EXPECT_EQ(json["schema"], "qrtool.report/1");
  ASSERT_EQ(json["matrices"].size(), 3u);
  EXPECT_EQ(json["matrices"][0]["matrix"], 0);
  EXPECT_EQ(json["matrices"][0]["residual"], 1.25e-7);
  EXPECT_EQ(json["matrices"][0]["scale"], -3);
  EXPECT_EQ(json["matrices"][0]["tries"], 2);
  EXPECT_TRUE(json["matrices"][1]["residual"].is_null());
  EXPECT_EQ(json["matrices"][1]["status"], 2);
  EXPECT_EQ(json["matrices"][2]["diagonal_ratio"], 1);
}

TEST_F(ReportFileTest, WithoutMatrices) {
  create_report_file("r.csv", false, report_columns({}))->commit();
  create_report_file("r.json", false, report_columns({}))->commit();
  EXPECT_EQ(read_text("r.csv"),
            "matrix,residual,orthogonality,lower,diagonal_ratio,status,scale,tries\n");
  EXPECT_EQ(nlohmann::json::parse(read_text("r.json"))["matrices"].size(), 0u);
}

TEST_F(ReportFileTest, Refusals) {
  EXPECT_EQ(error_of<UsageError>([] { create_report_file("r.xml", false, report_columns({})); }),
            "report 'r.xml': the name must end in .csv or .json");
  write_text("r.csv", "old");
  EXPECT_EQ(error_of<OutputError>([] { create_report_file("r.csv", false, report_columns({})); }),
            "'r.csv' exists | use --force to replace it");
  create_report_file("r.csv", true, report_columns({}));
  EXPECT_EQ(read_text("r.csv"), "old");
}

}  // namespace
}  // namespace qrtool::report_file_test

// SPDX-License-Identifier: Apache-2.0
// report_sax.hpp: where a reader of a report's JSON is. It goes from value to value, so that a
// report of many matrices needs little memory.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace qrtool {

/// Ignores all values. A reader overrides the calls of the values that it reads.
class ReportSax : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool key(string_t& text) override {
    key_ = text;
    if (depth_ == 1) section_ = text;
    return true;
  }
  bool start_object(std::size_t) override { return enter(); }
  bool end_object() override { return leave(); }
  bool start_array(std::size_t) override { return enter(); }
  bool end_array() override { return leave(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override {
    return false;
  }

 protected:
  /// Whether the parser is in the array or object `section` of the report, `levels` levels below
  /// it.
  bool is_in(const char* section, int levels) const {
    return depth_ == 1 + levels && section_ == section;
  }
  int depth() const { return depth_; }
  const std::string& section() const { return section_; }
  const std::string& last_key() const { return key_; }

 private:
  bool enter() {
    ++depth_;
    return true;
  }
  bool leave() {
    --depth_;
    return true;
  }

  int depth_ = 0;
  std::string section_, key_;  // the last keys at depth 1 and anywhere
};

/// Reads the JSON of a file. Returns false if it is no JSON. Errors: InputError if the file cannot
/// be read.
bool parse_report(const std::string& path, ReportSax& handler);

}  // namespace qrtool

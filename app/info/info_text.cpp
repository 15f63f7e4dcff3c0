// SPDX-License-Identifier: Apache-2.0
// info_text.cpp: one line for each dataset, then what factor would read, or what a run left.
#include "app/info/info_text.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <span>

#include "app/run/files/source_notes.hpp"
#include "app/run/verdict/verdict_text.hpp"
#include "core/join.hpp"
#include "core/report/report.hpp"
#include "core/text.hpp"
#include "io/report/stored_output.hpp"
#include "io/source/entry.hpp"

namespace qrtool {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t most_listed = 40;

/// Names the matrices of a source: "20 matrices of 8x3", "a matrix of 8x3".
std::string matrices_text(const Source& source) {
  const std::string of =
      source.leading.size() > 1
          ? fmt::format("{} ({})", format_count(source.count()), join(source.leading, "x"))
          : format_count(source.count());
  return source.leading.empty() ? fmt::format("a matrix of {}x{}", source.m, source.n)
                                : fmt::format("{} matrices of {}x{}", of, source.m, source.n);
}

std::string shape_text(const Entry& entry) {
  return entry.dims.empty() ? "-" : join(entry.dims, "x");
}

/// Returns "is text" for "a.h5: dataset /A is text", because the file and the dataset have been
/// printed already.
std::string short_problem(const FileContents& contents, const Entry& entry) {
  std::string problem = entry.problem;
  for (const std::string& before :
       {escape(contents.file) + ": ", std::string("dataset "), escape(entry.name) + " "})
    if (problem.starts_with(before)) problem.erase(0, before.size());
  return problem;
}

std::string meaning_of(const FileContents& contents, const FoundDataset& dataset) {
  if (!contents.outputs.empty()) return "";
  if (dataset.source) {
    // The details of a dataset that would be read are on their own line.
    const std::string details = contents.read ? "" : details_text(*dataset.source);
    return fmt::format("{}, by {}s ({}){}{}", matrices_text(*dataset.source),
                       name_of(dataset.source->order), dataset.order_reason,
                       details.empty() ? "" : "; ", details);
  }
  if (dataset.entry.is_coordinates) return "coordinates of a dimension";
  if (dataset.entry.dims.size() == 1 && !dataset.entry.stored_type.empty())
    return "a vector; solve takes it as b";
  return short_problem(contents, dataset.entry);
}

/// Whether an entry is a column of the report, or the attributes, of an output of this tool.
bool is_of_report(const Entry& entry) {
  return entry.name.starts_with("/report/") || entry.name.starts_with("report_") ||
         entry.name == "qrtool";
}

/// Returns the datasets that get a line: of an output the factors or solutions, since words
/// describe its report.
std::vector<const FoundDataset*> shown_datasets(const FileContents& contents) {
  std::vector<const FoundDataset*> shown;
  for (const FoundDataset& each : contents.datasets)
    if (contents.outputs.empty() || !is_of_report(each.entry)) shown.push_back(&each);
  return shown;
}

std::string dataset_lines(const FileContents& contents) {
  const std::vector<const FoundDataset*> shown = shown_datasets(contents);
  std::size_t name_width = 4, shape_width = 4, type_width = 4;
  for (const FoundDataset* each : shown) {
    name_width = std::max(name_width, escape(each->entry.name).size());
    shape_width = std::max(shape_width, shape_text(each->entry).size());
    type_width = std::max(type_width, each->entry.stored_type.size());
  }
  std::string text;
  std::size_t listed = 0;
  for (const FoundDataset* each : shown) {
    if (listed++ == most_listed) {
      text += fmt::format("  and {} more; --json lists them all\n", shown.size() - most_listed);
      break;
    }
    std::string line = fmt::format("  {:<{}}", escape(each->entry.name), name_width);
    line += fmt::format("  {:<{}}  {:<{}}  {}", shape_text(each->entry), shape_width,
                        each->entry.stored_type, type_width, meaning_of(contents, *each));
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string reading_text(const FileContents& contents, bool verbose) {
  if (!contents.objection.empty())
    return fmt::format("factor stops here: {}\n{}", contents.objection,
                       contents.hint.empty() ? "" : fmt::format("  {}\n", contents.hint));
  if (!contents.read) return "";
  const Source& source = *contents.read;
  std::string text = fmt::format("factor reads {}{}, and computes in {}\n",
                                 source.dataset.empty() ? "" : escape(source.dataset) + ": ",
                                 matrices_text(source), name_of(source.type));
  if (const std::string details = details_text(source); !details.empty())
    text += fmt::format("  read with {}\n", details);
  if (source.table.has_header) {
    std::vector<std::string> names;
    for (const std::string& name : source.table.names()) {
      if (names.size() == 12 && !verbose) {
        names.push_back("...");
        break;
      }
      names.push_back(escape(name));
    }
    text += fmt::format("  columns {}\n", join(names, ", "));
  }
  for (const std::string& note : source_notes(source)) text += fmt::format("  note: {}\n", note);
  return text;
}

/// Puts the attributes into the words of a sentence. Attributes that a file does not record are
/// left out.
std::string origin_text(const StoredOutput& stored, bool has_solutions) {
  const auto word = [&](const char* name) { return escape(stored.attribute(name)); };
  const auto place = [&](const char* file, const char* dataset) {
    return word(dataset).empty() ? word(file) : word(file) + ":" + word(dataset);
  };
  std::vector<std::string> parts;
  const auto add = [&](const char* before, const std::string& text) {
    if (!text.empty()) parts.push_back(before + text);
  };
  add("from ", place("source_file", "source_dataset"));
  if (const std::string response = word("response"); !response.empty()) {
    add("response ", response);
    if (word("intercept") == "yes") add("", "with an intercept");
  } else if (has_solutions) {
    add("and ", place("right_side_file", "right_side_dataset"));
  }
  add("with ", word("with"));
  add("", word("mode"));
  add("sign ", word("sign"));
  add("", word("precision"));
  add("arithmetic ", word("arithmetic"));
  add("", word("solution"));
  add("by ", word("variant"));
  add("", word("way"));
  add("on ", word("device"));
  add("check ", word("check"));
  return parts.empty() ? "CSV does not say how they were made" : join(parts, ", ");
}

std::string count_text(const OutputSummary& output) {
  std::vector<std::string> parts;
  for (std::uint8_t s = 0; s < output.status.size(); ++s)
    if (output.status[s] > 0)
      parts.push_back(fmt::format("{} {}", format_count(output.status[s]),
                                  words_of(Status{s}, output.subject())));
  return fmt::format("{}: {}; {} by a second try", counted(output.count, output.subject()),
                     parts.empty() ? "the report is empty" : join(parts, ", "),
                     format_count(output.second_tries));
}

std::string error_text(const OutputSummary& output, const ErrorSummary& error) {
  if (error.where < 0) return fmt::format("  {:<17} not measured\n", error.name);
  const bool has_bar = error.bar > 0;
  return fmt::format(
      "  {:<17} at most {:.2g}{} ({} {}){}\n", error.name, error.worst,
      has_bar ? fmt::format(", {:.2g} of its bar {:.2g}", error.worst / error.bar, error.bar) : "",
      output.subject().place, matrix_name(output.leading, error.where),
      has_bar ? "" : "; its bar is not in the file");
}

std::string output_text(const OutputSummary& output, bool verbose) {
  const StoredOutput& stored = output.stored;
  const std::string version = stored.attribute("qrtool_version");
  std::string text = fmt::format(
      "{}{} of qrtool{}\n  {}\n  {}\n", stored.dataset.empty() ? "" : escape(stored.dataset) + ": ",
      output.has_solutions ? "solutions" : "factors", version.empty() ? "" : " " + escape(version),
      origin_text(stored, output.has_solutions), count_text(output));
  for (const ErrorSummary& error : output.errors) text += error_text(output, error);
  if (!output.histogram.columns.empty()) text += to_text(output.histogram);
  if (verbose)
    for (const auto& [name, value] : stored.attributes)
      text += fmt::format("  {} = {}\n", escape(name), escape(value));
  return text;
}

Json json_of(const Source& source) {
  std::vector<index_t> shape = source.leading;
  shape.insert(shape.end(), {source.m, source.n});
  Json details = Json::object();
  for (const auto& [name, word] : source.details) details[name] = word;
  return {{"dataset", source.dataset},       {"shape", shape},
          {"order", name_of(source.order)},  {"factored_in", name_of(source.type)},
          {"columns", source.table.names()}, {"read_as", details},
          {"notes", source_notes(source)}};
}

Json json_of(const FoundDataset& dataset) {
  const Entry& entry = dataset.entry;
  Json matrices;
  if (dataset.source) {
    matrices = json_of(*dataset.source);
    matrices["order_reason"] = dataset.order_reason;
  }
  return {{"name", entry.name},
          {"stored_shape", entry.dims},
          {"type", entry.stored_type},
          {"problem", entry.problem.empty() ? Json() : Json(entry.problem)},
          {"matrices", matrices}};
}

Json json_of(const ErrorSummary& error) {
  const bool is_measured = error.where >= 0, has_bar = error.bar > 0;
  return {{"name", error.name},
          {"worst", is_measured ? Json(error.worst) : Json()},
          {"at", is_measured ? Json(error.where) : Json()},
          {"bar", has_bar ? Json(error.bar) : Json()},
          {"ratio", is_measured && has_bar ? Json(error.worst / error.bar) : Json()}};
}

Json json_of(const Histogram& histogram) {
  Json columns = Json::object();
  for (const auto& column : histogram.columns) columns[std::string(column.name)] = column.counts;
  return {{"edges", histogram.edges}, {"counts", columns}};
}

Json json_of(const OutputSummary& output) {
  Json attributes = Json::object(), status = Json::object(), errors = Json::array();
  for (const auto& [name, value] : output.stored.attributes) attributes[name] = value;
  const std::span<const std::string_view> names =
      output.has_solutions ? std::span<const std::string_view>(solution_status_names)
                           : status_names;
  for (std::size_t i = 0; i < names.size(); ++i) status[std::string(names[i])] = output.status[i];
  for (const ErrorSummary& error : output.errors) errors.push_back(json_of(error));
  return {{"kind", output.has_solutions ? "solutions" : "factors"},
          {"dataset", output.stored.dataset},
          {"attributes", attributes},
          {"count", output.count},
          {"status", status},
          {"second_tries", output.second_tries},
          {"errors", errors},
          {"histogram", json_of(output.histogram)}};
}

}  // namespace

std::string text_of(const FileContents& contents, bool verbose) {
  const bool is_set = !contents.files.empty();
  // The size of standard input is not known.
  const std::string size = contents.file == "-" ? ""
                           : contents.bytes > 0 ? ", " + format_bytes(contents.bytes)
                                                : ", empty";
  std::string text =
      fmt::format("{}: {}{}{}\n", escape(contents.file), contents.format,
                  is_set ? fmt::format(", {} files", contents.files.size()) : "", size);
  const bool is_one = contents.datasets.size() == 1 && contents.datasets[0].entry.name.empty();
  if (!is_one) text += dataset_lines(contents);
  if (is_one)
    text += fmt::format("  {}  {}  {}\n", shape_text(contents.datasets[0].entry),
                        contents.datasets[0].entry.stored_type,
                        meaning_of(contents, contents.datasets[0]));
  text += reading_text(contents, verbose);
  for (const OutputSummary& output : contents.outputs) text += output_text(output, verbose);
  return text;
}

Json to_json(const FileContents& contents) {
  Json datasets = Json::array(), outputs = Json::array();
  for (const FoundDataset& dataset : contents.datasets) datasets.push_back(json_of(dataset));
  for (const OutputSummary& output : contents.outputs) outputs.push_back(json_of(output));
  return {{"schema", "qrtool.info/1"},
          {"version", QRTOOL_VERSION},
          {"file", contents.file},
          {"files", contents.files},
          {"format", contents.format},
          {"bytes", contents.bytes},
          {"datasets", datasets},
          {"factor_reads", contents.read ? json_of(*contents.read) : Json()},
          {"objection", contents.objection.empty() ? Json() : Json(contents.objection)},
          {"hint", contents.hint.empty() ? Json() : Json(contents.hint)},
          {"outputs", outputs},
          {"exit", 0}};
}

}  // namespace qrtool

// SPDX-License-Identifier: Apache-2.0
// command_line.cpp: help and errors of the command line; the only file that knows CLI11.
#include "app/cli/command_line.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "core/text.hpp"

namespace qrtool {
namespace {

/// `text` in lines of at most 80 columns, the second and later ones indented.
std::string wrap(std::string_view text, std::size_t column, std::size_t indent) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (column + end > 80) {
      while (out.ends_with(' ')) out.pop_back();
      out += "\n" + std::string(indent, ' ');
      column = indent;
    }
    out += text.substr(0, end);
    column += end + 1;
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!text.empty()) out += ' ';
  }
  return out + "\n";
}

bool is_flag(const CLI::Option& option) { return option.get_items_expected_max() == 0; }

}  // namespace

struct CommandLine::Parser {
  CLI::App app;
};

CommandLine::CommandLine(std::string_view name, std::string_view positionals,
                         std::string_view about)
    : name_(name), positionals_(positionals), about_(about), parser_(std::make_unique<Parser>()) {
  parser_->app.set_help_flag();
  parser_->app.allow_extras();
}

CommandLine::~CommandLine() = default;

void CommandLine::positional(const std::string& name, std::string& target,
                             const std::string& help) {
  parser_->app.add_option(name, target, help);
  required_.emplace_back(name, &target);
}

void CommandLine::flag(const std::string& names, bool& target, const std::string& help) {
  parser_->app.add_flag(names, target, help);
}

void CommandLine::value(const std::string& name, const std::string& placeholder,
                        const std::string& help,
                        const std::function<void(const std::string&)>& set) {
  parser_->app.add_option_function<std::string>(name, set, help)
      ->type_name(placeholder)
      ->take_last();
}

void CommandLine::optional_value(const std::string& name, const std::string& placeholder,
                                 const std::string& usual, const std::string& help,
                                 const std::function<void(const std::string&)>& set) {
  value(name, placeholder, help, set);
  usual_.emplace_back(name, usual);
}

void CommandLine::list(const std::string& name, const std::string& placeholder,
                       const std::string& help,
                       const std::function<void(const std::string&)>& set) {
  parser_->app.add_option_function<std::string>(name, set, help)->type_name(placeholder)->join(',');
}

UsageError CommandLine::usage_error(const std::string& what) const {
  return UsageError(what, fmt::format("qrtool {} --help lists the options", name_));
}

/// Finds everything that CLI11 would report in its own words, or take for something else.
void CommandLine::check(const Args& args) const {
  const CLI::App& app = parser_->app;
  std::vector<std::string> names{"--help"};
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  const std::vector<std::string_view> candidates(names.begin(), names.end());

  const auto find = [&](const std::string& arg) {
    if (const CLI::Option* option = app.get_option_no_throw(arg)) return option;
    const std::string_view near = nearest(arg, candidates);
    throw usage_error(fmt::format("unknown option '{}'{}", escape(arg),
                                  near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
  };
  for (std::size_t i = 0; i < args.size() && args[i] != "--"; ++i) {
    const std::string& arg = args[i];
    if (arg.size() < 2 || arg[0] != '-') continue;
    if (arg[1] != '-') {
      for (const char letter : arg.substr(1)) find(std::string("-") + letter);
      continue;
    }
    const std::size_t equals = arg.find('=');
    const std::string name = arg.substr(0, equals);
    const CLI::Option& option = *find(name);
    const bool has_value = equals != std::string::npos;
    if (is_flag(option) && has_value)
      throw usage_error(fmt::format("option '{}' takes no value", name));
    if (is_flag(option)) continue;
    if (!has_value) ++i;
    const bool is_missing =
        has_value ? equals + 1 == arg.size() : i >= args.size() || args[i].starts_with("--");
    if (is_missing) throw usage_error(fmt::format("option '{}' needs a value", name));
  }
}

void CommandLine::parse(Args args) {
  for (std::size_t i = 0; i < args.size() && args[i] != "--"; ++i) {
    const bool has_value = i + 1 < args.size() && !args[i + 1].starts_with('-');
    for (const auto& [name, usual] : usual_)
      if (args[i] == name && !has_value) args[i] += "=" + usual;
  }
  check(args);
  std::reverse(args.begin(), args.end());  // CLI11 takes them from the back
  try {
    parser_->app.parse(args);
  } catch (const CLI::ParseError& error) {
    throw usage_error(escape(error.what()));
  }
  for (const auto& [name, target] : required_)
    if (target->empty()) throw usage_error(fmt::format("{}: {} is missing", name_, name));
  Args extra = parser_->app.remaining();
  if (!extra.empty() && extra.front() == "--") extra.erase(extra.begin());
  if (!extra.empty())
    throw usage_error(fmt::format("unexpected argument '{}'", escape(extra.front())));
}

std::string CommandLine::help() const {
  std::string out =
      fmt::format("usage: qrtool {} [OPTION]... {}\n\n{}\n", name_, positionals_, about_);
  constexpr std::size_t indent = 24;
  for (const CLI::Option* option : parser_->app.get_options()) {
    const bool is_positional = option->get_positional();
    std::string left = "  " + option->get_name(is_positional, true);
    if (const std::size_t comma = left.find(','); comma != std::string::npos)
      left.insert(comma + 1, " ");
    if (!is_flag(*option) && !is_positional) left += " " + option->get_type_name();
    left += left.size() + 2 > indent ? "\n" + std::string(indent, ' ')
                                     : std::string(indent - left.size(), ' ');
    out += left + wrap(option->get_description(), indent, indent);
  }
  return out + "  -h, --help            this text\n";
}

}  // namespace qrtool

// SPDX-License-Identifier: Apache-2.0
// command_line.cpp: parses by CLI11, which no other file knows, and writes help and errors.
#include "app/cli/command_line.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <utility>

#include "core/text.hpp"

namespace qrtool {
namespace {

/// Breaks `text` into lines of at most 80 columns and indents all except the first.
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

/// The separator of the values of a repeated option, which CLI11 passes as one text.
constexpr char between_values = '\n';

bool is_flag(const CLI::Option& option) { return option.get_items_expected_max() == 0; }

}  // namespace

struct CommandLine::Parser {
  /// A value that was given. It is looked at only after the whole line, since --help comes first.
  struct Value {
    std::string name, text;
    Setter set;
  };
  CLI::Option* add(const std::string& name, const std::string& placeholder, const std::string& help,
                   Setter set);

  /// An option that a variable of the environment may give.
  struct Variable {
    std::string name;
    const char* variable;
    Setter set;
  };

  CLI::App app;
  std::vector<Value> values;
  std::vector<Variable> variables;
  std::vector<std::pair<std::string, Setter>> setters;
  std::vector<std::pair<std::string, std::function<std::vector<Candidate>()>>> suggestions;
  std::vector<std::string> not_deciding;
};

CommandLine::CommandLine(std::string name, std::string_view positionals, std::string_view about)
    : name_(std::move(name)),
      positionals_(positionals),
      about_(about),
      parser_(std::make_unique<Parser>()) {
  parser_->app.set_help_flag("-h,--help", "this text");
  parser_->app.allow_extras();
}

CommandLine::~CommandLine() = default;

void CommandLine::positional(const std::string& name, std::string& target,
                             const std::string& help) {
  parser_->app.add_option(name, target, help);
  required_.emplace_back(name, &target);
}

void CommandLine::optional_positional(const std::string& name, std::string& target,
                                      const std::string& help) {
  parser_->app.add_option(name, target, help);
}

void CommandLine::many(const std::string& name, std::vector<std::string>& files) {
  many_option_ = name;
  many_ = &files;
}

void CommandLine::flag(const std::string& names, bool& target, const std::string& help) {
  parser_->app.add_flag(names, target, help)->disable_flag_override();
}

CLI::Option* CommandLine::Parser::add(const std::string& name, const std::string& placeholder,
                                      const std::string& help, Setter set) {
  const auto keep = [this, name, set](const std::string& text) {
    values.push_back({name, text, set});
  };
  setters.emplace_back(name, set);
  return app.add_option_function<std::string>(name, keep, help)->type_name(placeholder);
}

void CommandLine::value(const std::string& name, const std::string& placeholder,
                        const std::string& help, const Setter& set) {
  parser_->add(name, placeholder, help, set)->take_last();
}

void CommandLine::optional_value(const std::string& name, const std::string& placeholder,
                                 const std::string& usual, const std::string& help,
                                 const Setter& set) {
  parser_->add(name, placeholder, help, set)->take_last()->expected(0, 1)->default_str(usual);
}

void CommandLine::list(const std::string& name, const std::string& placeholder,
                       const std::string& help, const Setter& set) {
  // CLI11 would split the list at commas and drop its empty items.
  const auto set_joined = [set](std::string text) {
    std::replace(text.begin(), text.end(), between_values, ',');
    set(text);
  };
  parser_->add(name, placeholder, help, set_joined)->join(between_values);
}

void CommandLine::repeated(const std::string& name, const std::string& placeholder,
                           const std::string& help, const Setter& set) {
  const auto set_each = [set](const std::string& text) {
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t end = std::min(text.find(between_values, at), text.size());
      set(text.substr(at, end - at));
      at = end + 1;
    }
  };
  parser_->add(name, placeholder, help, set_each)->join(between_values);
}

void CommandLine::suggest(const std::string& name, std::function<std::vector<Candidate>()> list) {
  parser_->suggestions.emplace_back(name, std::move(list));
}

void CommandLine::environment(const std::string& name, const char* variable, Setter set) {
  if (set == nullptr) {
    for (const auto& [known, setter] : parser_->setters)
      if (known == name) set = setter;
  }
  parser_->variables.push_back({name, variable, std::move(set)});
}

void CommandLine::read_environment() const {
  for (const auto& [name, variable, set] : parser_->variables) {
    const char* const text = std::getenv(variable);
    bool is_given = false;
    for (const Parser::Value& each : parser_->values) is_given = is_given || each.name == name;
    if (text == nullptr || *text == '\0' || is_given) continue;
    try {
      set(text);
    } catch (const UsageError& error) {
      throw UsageError(fmt::format("{}: {}", variable, error.what()), error.hint());
    }
  }
}

std::vector<Candidate> CommandLine::complete(const std::string& before,
                                             const std::string& typed) const {
  for (const auto& [name, list] : parser_->suggestions)
    if (name == before) return list();
  const CLI::Option* const option = parser_->app.get_option_no_throw(before);
  if (before.starts_with('-') && option != nullptr && !is_flag(*option)) return {};
  if (!typed.starts_with('-')) return {};
  std::vector<Candidate> options;
  for (const CLI::Option* each : parser_->app.get_options()) {
    const std::string about = each->get_description().substr(0, each->get_description().find(';'));
    for (const std::string& name : each->get_lnames()) options.push_back({"--" + name, about});
  }
  return options;
}

UsageError CommandLine::usage_error(const std::string& what) const {
  return UsageError(what, fmt::format("{} --help lists the options", name_));
}

UsageError CommandLine::unknown_option(const std::string& arg) const {
  std::vector<std::string> names;
  for (const CLI::Option* option : parser_->app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  const std::string name = arg.substr(0, arg.find('='));
  for (const auto& [word, hint] : elsewhere_)
    if (word == name)
      return UsageError(fmt::format("there is no option '{}'", escape(name)), std::string(hint));
  const std::string_view near = nearest(name, candidates);
  return usage_error(fmt::format("unknown option '{}'{}", escape(name),
                                 near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
}

/// CLI11's messages begin with the name of the option, for a flag without its dashes.
UsageError CommandLine::in_our_words(const std::string& message) const {
  std::string name = message.substr(0, message.find_first_of(": "));
  if (!name.starts_with('-')) name = "--" + name;
  const CLI::Option* option = parser_->app.get_option_no_throw(name);
  if (option == nullptr) return usage_error(escape(message));
  return usage_error(
      fmt::format("option '{}' {}", name, is_flag(*option) ? "takes no value" : "needs a value"));
}

bool CommandLine::has_many() const {
  return many_ != nullptr && parser_->app.get_option(many_option_)->count() > 0;
}

/// Returns the flag right before the last word, or an empty text if there is another word.
std::string CommandLine::flag_before_last(const Args& args) const {
  if (args.size() < 2) return {};
  const std::string& word = args[args.size() - 2];
  const CLI::Option* option =
      word.starts_with('-') ? parser_->app.get_option_no_throw(word) : nullptr;
  return option != nullptr && is_flag(*option) ? word : "";
}

/// Checks the words of the line that are no options. `extra` has the words for which the command
/// has no argument, and `flag` is the flag before the last word.
void CommandLine::take_words(Args extra, const std::string& flag) const {
  for (const std::string& arg : extra) {
    if (arg == "--") break;
    if (arg.size() > 1 && arg.starts_with('-')) throw unknown_option(arg);
  }
  for (const auto& [name, target] : required_) {
    if (target->empty())
      throw usage_error(fmt::format("{}: {} is missing", name_.substr(name_.rfind(' ') + 1), name));
    if (has_many()) break;
  }
  std::erase(extra, "--");
  if (has_many()) {
    for (const CLI::Option* option : parser_->app.get_options())
      if (option->get_positional())
        many_->insert(many_->end(), option->results().begin(), option->results().end());
    many_->insert(many_->end(), extra.begin(), extra.end());
    return;
  }
  if (extra.empty()) return;
  const std::string what = fmt::format("unexpected argument '{}'", escape(extra.front()));
  if (extra.size() > 1 || flag.empty()) throw usage_error(what);
  throw UsageError(what, fmt::format("{} takes no value; leave the last word away", flag));
}

bool CommandLine::takes_next_word(const std::string& word) const {
  if (!word.starts_with('-')) return false;
  const CLI::Option* option = parser_->app.get_option_no_throw(word);
  return option != nullptr && !is_flag(*option) && option->get_items_expected_min() > 0;
}

bool CommandLine::parse(Args args) {
  // As the value of an option, "--" does not end the options.
  for (std::size_t i = 0; i + 1 < args.size(); ++i) {
    if (args[i] == "--") break;
    if (!takes_next_word(args[i])) continue;
    if (args[i + 1] != "--") {
      ++i;
      continue;
    }
    args[i] += "=--";
    args.erase(args.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
  const std::string flag = flag_before_last(args);
  std::reverse(args.begin(), args.end());  // CLI11 takes arguments from the back
  try {
    parser_->app.parse(args);
  } catch (const CLI::CallForHelp&) {
    return false;
  } catch (const CLI::ParseError& error) {
    throw in_our_words(error.what());
  }
  take_words(parser_->app.remaining(), flag);
  for (const auto& [name, text, set] : parser_->values) {
    // CLI11 takes the next word as the value even if it is an option.
    if (text.empty() || (text.starts_with("--") && text != "--"))
      throw usage_error(fmt::format("option '{}' needs a value", name));
    set(text);
  }
  read_environment();
  return true;
}

void CommandLine::elsewhere(std::string_view name, std::string_view instead) {
  elsewhere_.emplace_back(name, instead);
}

void CommandLine::not_deciding(const std::string& name) { parser_->not_deciding.push_back(name); }

std::vector<GivenOption> CommandLine::deciding_options() const {
  std::vector<GivenOption> given;
  for (const CLI::Option* option : parser_->app.get_options()) {
    if (option->get_positional() || option->count() == 0) continue;
    const std::string name = "--" + option->get_lnames().front();
    const auto& ignored = parser_->not_deciding;
    if (std::find(ignored.begin(), ignored.end(), name) != ignored.end()) continue;
    given.push_back({name, is_flag(*option) ? "" : CLI::detail::join(option->results(), ",")});
  }
  return given;
}

std::string CommandLine::help() const {
  std::string out = fmt::format("usage: {} [OPTION]... {}\n\n{}\n", name_, positionals_, about_);
  constexpr std::size_t indent = 24;
  for (const CLI::Option* option : parser_->app.get_options()) {
    if (option == parser_->app.get_help_ptr()) continue;  // comes last
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

// SPDX-License-Identifier: Apache-2.0
// state.cpp: what a call of the stand-in begins and ends with.
#include "tests/support/cuda_stand_in/state.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string_view>

namespace qrtool::cuda {
namespace {

thread_local const char* symbol_of_call = "at the end";

bool is_forked() { return state().process != 0 && state().process != getpid(); }

/// "SYMBOL:K[+][:CODE]"
Failure failure_of(const std::string& text) {
  std::istringstream parts(text);
  std::string symbol, number, code;
  std::getline(parts, symbol, ':');
  std::getline(parts, number, ':');
  std::getline(parts, code);
  Failure failure{.symbol = symbol};
  failure.from = std::stoull(number);
  failure.to = number.ends_with('+') ? ~std::uint64_t{0} : failure.from;
  if (!code.empty()) failure.code = std::stoi(code);
  return failure;
}

Words words_of(const char* text) {
  Words words;
  std::istringstream list(text == nullptr ? "" : text);
  for (std::string word; std::getline(list, word, ',');) {
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string name = word.substr(0, equals);
    const std::string value = equals == word.size() ? "" : word.substr(equals + 1);
    if (name == "fail") {
      words.failures.push_back(failure_of(value));
    } else if (name == "dead") {
      words.dead = std::stoull(value);
    } else if (name == "devices") {
      words.devices = std::stoi(value);
    } else if (name == "memory") {
      words.memory = std::stoull(value);
    } else if (name == "capture") {
      words.captures = true;
    } else if (name == "no-pools") {
      words.has_pools = false;
    } else if (name == "strict") {
      words.is_strict = true;
    } else if (name == "leaks") {
      words.reports_leaks = true;
    } else if (name == "log") {
      words.log = value;
    } else {
      broken("QRTOOL_STAND_IN has no word " + word);
    }
  }
  return words;
}

/// The code with which this call fails, or success.
Result refusal(const char* symbol, Needs needs) {
  State& s = state();
  const std::uint64_t call = ++s.calls[symbol];
  if (is_forked() || (needs != Needs::nothing && !s.is_initialised)) return not_initialized;
  if (s.is_dead && needs == Needs::context) return context_is_lost;
  for (const Failure& failure : s.words.failures)
    if (failure.symbol == symbol && call >= failure.from && call <= failure.to) return failure.code;
  return success;
}

void log_call(const char* symbol, const std::optional<Stream>& stream, Result result) {
  const std::string& file = state().words.log;
  if (file.empty()) return;
  std::ostringstream line;
  line << symbol << ' ';
  if (stream)
    line << static_cast<const void*>(*stream);
  else
    line << '-';
  line << ' ' << result << state().note << '\n';
  const int descriptor = open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT, 0666);
  if (descriptor < 0) broken("the log cannot be written");
  const std::string text = line.str();
  if (write(descriptor, text.data(), text.size()) < 0) broken("the log cannot be written");
  close(descriptor);
}

/// At the end of the process.
__attribute__((destructor)) void report_leaks() {
  const State& s = state();
  if (!s.words.reports_leaks || is_forked() || s.is_dead) return;
  for (const auto& [address, memory] : s.memories)
    broken("memory of " + std::to_string(memory.bytes) + " bytes is never freed");
}

}  // namespace

void broken(const std::string& rule) {
  std::fprintf(stderr, "cuda stand-in: %s: %s\n", symbol_of_call, rule.c_str());
  std::abort();
}

State& state() {
  static State& made = *new State;
  return made;
}

void read_words(const char* words) {
  State& s = state();
  s.words = words_of(words);
  s.calls.clear();
  s.launches = 0;
  s.is_dead = false;
}

namespace {

/// Looks at the end of a thread whether its pushes and pops are as many.
struct Balance {
  ~Balance() {
    if (of->pushes != 0 && !is_forked())
      broken("a thread ends with " + std::to_string(of->pushes) +
             " more pushes of contexts than pops");
  }
  const Stack* of;
};

}  // namespace

/// Never destroyed, since destructors that run later may call.
Stack& stack() {
  static thread_local Stack* const of_thread = [] {
    State& s = state();
    const std::lock_guard lock(s.stacks_mutex);
    return &s.stacks.emplace_back();
  }();
  static thread_local const Balance balance{of_thread};
  return *of_thread;
}

Context current() {
  const auto& list = stack().list;
  if (list.empty() || list.back() == nullptr) broken("no context is current");
  return known(state().contexts, list.back(), "the current context");
}

Result called(const char* symbol, Needs needs, const std::function<Result()>& body,
              std::optional<Stream> stream) {
  State& s = state();
  if (is_forked()) return not_initialized;  // a mutex may be locked forever
  const std::lock_guard lock(s.mutex);
  symbol_of_call = symbol;
  s.note.clear();
  static const bool has_read = (read_words(std::getenv("QRTOOL_STAND_IN")), true);
  if (has_read && s.is_initialised && needs == Needs::context) current();
  Result result = refusal(symbol, needs);
  // A pop takes place even where it fails.
  const bool is_pop = std::string_view(symbol) == "cuCtxPopCurrent_v2";
  if (result == success || (is_pop && s.is_initialised)) {
    const Result own = body();
    if (result == success) result = own;
  }
  log_call(symbol, stream, result);
  symbol_of_call = "at the end";
  return result;
}

void note(const std::string& word) { state().note = ' ' + word; }

Device known_device(Device device) {
  if (device < 0 || device >= count_of_devices()) broken("unknown device");
  return device;
}

Stream make_stream(Context context, bool is_blocking) {
  auto* stream = new Stream_;
  stream->context = context;
  stream->is_blocking = is_blocking;
  stream->number = state().made_streams++;
  state().streams.insert(stream);
  return stream;
}

Stream stream_of(Stream handle) {
  const auto number = reinterpret_cast<std::uintptr_t>(handle);
  const Context context = current();
  if (number <= 1) {
    if (context->legacy == nullptr) {
      context->legacy = make_stream(context, /*is_blocking=*/true);
      context->legacy->is_legacy = true;
    }
    return context->legacy;
  }
  if (number == 2) {
    Stream& stream = stack().streams[context];
    if (stream == nullptr) stream = make_stream(context, /*is_blocking=*/true);
    return stream;
  }
  const Stream stream = known(state().streams, handle, "the stream");
  if (stream->context != context) broken("the stream belongs to another context");
  return stream;
}

}  // namespace qrtool::cuda

// Text generation by a plan that keeps its caches, through the runtime library alone: several
// caches over one copy of the weights, each with a random text of its own. Beside it, in turns, the
// plan of the same model whose caller keeps the caches; both must give the same bits. Prints one
// JSON line: medians of one step in milliseconds, bytes between host and device per step, and
// memory. Ends with 1 when a bit differs. usage: bench_decode PLAN PLAN_WITHOUT_STATES [STEPS]
// [CACHES] [THREADS]
//   PLAN: hone optimize MODEL --state 'past.*=present.*'; MODEL: bench/optimize/models.py
//   gpt2-decode
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <random>

#include "api/runtime/runtime.h"

namespace {

using namespace hone::runtime;
using Floats = std::vector<float>;

double ms(const auto& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

double median(std::vector<double> all) {
  if (all.empty()) return -1;
  std::ranges::nth_element(all, all.begin() + std::ssize(all) / 2);
  return all[all.size() / 2];
}

// One text: what both plans are asked, and what they answer.
struct Text {
  std::int64_t id = 0, position = 0, words = 0;
  Floats logits, wanted;

  void bind(Session& s, Floats& to) {
    s.bind_input(s.input("input_ids"), {1, 1}, std::span(&id, 1));
    s.bind_input(s.input("position_ids"), {1, 1}, std::span(&position, 1));
    to.resize(static_cast<std::size_t>(words));
    s.bind_output(s.output("logits"), {1, 1, words}, to);
  }
};

// A cache that is an input, and the same cache one position longer.
struct Cache {
  std::int32_t past = 0, present = 0;
  Dims dims;
  Floats from, to;
};

// The caller keeps the caches.
class Stateless {
 public:
  Stateless(const Executable& e, const SessionOptions& options, Text& text)
      : session_(e, options), text_(text) {
    for (std::int32_t i = 0; i < e.inputs(); ++i) {
      const hone_tensor_info info = e.input(i);
      const std::string name = info.name;
      if (!name.starts_with("past.")) continue;
      Dims dims(info.dims, info.dims + info.rank);
      dims[2] = 0;
      caches_.push_back({i, session_.output("present." + name.substr(5)), dims, {}, {}});
    }
    text_.bind(session_, text_.wanted);
  }

  void prepare() {
    for (Cache& c : caches_) {
      Dims next = c.dims;
      ++next[2];
      c.to.assign(static_cast<std::size_t>(next[0] * next[1] * next[2] * next[3]), 0);
      session_.bind_input(c.past, c.dims, c.from);
      session_.bind_output(c.present, next, c.to);
    }
  }
  void run() { session_.run(); }
  void take_over() {
    for (Cache& c : caches_) {
      std::swap(c.from, c.to);
      ++c.dims[2];
    }
  }

 private:
  Session session_;
  Text& text_;
  std::deque<Cache> caches_;
};

int decode(const char* plan, const char* without, int steps, int caches, int threads) {
  const Executable with_states(plan), stateless(without);
  std::deque<Text> texts(static_cast<std::size_t>(caches));
  std::deque<State> states;
  std::deque<Session> sessions;
  std::deque<Stateless> others;
  for (Text& t : texts) {
    t.words = with_states.output(0).dims[2];
    states.emplace_back(with_states);
    SessionOptions options;
    options.threads = threads;
    options.states = {&states.back()};
    sessions.emplace_back(with_states, options);
    t.bind(sessions.back(), t.logits);
    options.states = {};
    others.emplace_back(stateless, options, t);
  }
  std::mt19937_64 random(1);
  std::vector<double> ours, theirs;
  long long different = 0;
  for (int step = 0; step < steps; ++step)
    for (std::size_t c = 0; c < texts.size(); ++c) {
      texts[c].id =
          static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(texts[c].words));
      texts[c].position = step;
      others[c].prepare();
      ours.push_back(ms([&] { sessions[c].run(); }));
      theirs.push_back(ms([&] { others[c].run(); }));
      others[c].take_over();
      different += texts[c].logits != texts[c].wanted;
    }
  const hone_traffic traffic = sessions[0].traffic();
  const hone_memory memory = sessions[0].memory();
  std::printf(
      "{\"steps\": %d, \"caches\": %d, \"threads\": %d, \"step_ms\": %.3f, \"without_states_ms\": "
      "%.3f, \"different\": %lld, \"uploaded_per_step\": %.1f, \"downloaded_per_step\": %.1f, "
      "\"state_bytes\": %zu, \"shared_bytes\": %zu}\n",
      steps, caches, threads, median(ours), median(theirs), different,
      static_cast<double>(traffic.uploaded) / steps,
      static_cast<double>(traffic.downloaded) / steps, memory.states,
      memory.weights + memory.prepared);
  return different == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr,
                 "usage: bench_decode PLAN PLAN_WITHOUT_STATES [STEPS] [CACHES] [THREADS]\n");
    return 2;
  }
  const auto number = [&](int i, int otherwise) {
    return i < argc ? std::atoi(argv[i]) : otherwise;
  };
  try {
    return decode(argv[1], argv[2], number(3, 200), number(4, 8), number(5, 0));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench_decode: %s\n", e.what());
    return 3;
  }
}

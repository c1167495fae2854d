#include "gate.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include "backend/cpu/isa/isa.h"

namespace hone::gates {

namespace {

int count_of_missed = 0;
std::string part_of_name;

double milliseconds(int threads) {
  timespec t{};
  clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return 1e3 * static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_nsec);
}

double run_ms(const std::function<void()>& f, int times, int threads) {
  const double start = milliseconds(threads);
  for (int i = 0; i < times; ++i) f();
  return (milliseconds(threads) - start) / times;
}

// Number of runs in one sample, chosen so that a sample takes a millisecond.
int repeats_of(const std::function<void()>& f, int threads) {
  f();  // warms caches and pages
  const double once = std::max(run_ms(f, 1, threads), 1e-4);
  return static_cast<int>(std::clamp(1.0 / once, 1.0, 1e4));
}

void judge(const std::string& name, const char* bound_name, double bound,
           const std::function<bool(const Interval&)>& holds,
           const std::function<Ratio()>& measure) {
  if (name.find(part_of_name) == std::string::npos) return;
  constexpr int most_attempts = 3;
  std::ostringstream attempts;
  bool ok = false;
  for (int i = 0; i < most_attempts && !ok; ++i) {
    const Ratio r = measure();
    ok = holds(r);
    char text[160];
    std::snprintf(text, sizeof text,
                  "%s{\"ratio\": %.3f, \"low\": %.3f, \"high\": %.3f, \"of_least\": %.3f}",
                  i ? ", " : "", r.median, r.low, r.high, r.of_least);
    attempts << text;
  }
  count_of_missed += !ok;
  std::printf("{\"gate\": \"%s\", \"%s\": %.2f, \"ok\": %s, \"rounds\": %d, \"attempts\": [%s]}\n",
              name.c_str(), bound_name, bound, ok ? "true" : "false", rounds,
              attempts.str().c_str());
  std::fflush(stdout);
}

std::string cpuinfo(const std::string& key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind(key, 0) == 0)
      if (std::size_t colon = line.find(": "); colon != std::string::npos)
        return line.substr(colon + 2);
  return "unknown";
}

}  // namespace

Ratio ratio_of(const Race& race) {
  const int of_a = repeats_of(race.a, race.threads), of_b = repeats_of(race.b, race.threads);
  std::vector<double> a, b;
  for (int round = 0; round < rounds; ++round) {
    auto run_a = [&] { a.push_back(run_ms(race.a, of_a, race.threads)); };
    auto run_b = [&] { b.push_back(run_ms(race.b, of_b, race.threads)); };
    if (round % 2) {
      run_b(), run_a();
    } else {
      run_a(), run_b();
    }
  }
  return {paired_ratio(a, b), std::ranges::min(a) / std::ranges::min(b)};
}

void at_least(const std::string& name, double floor, const std::function<Ratio()>& measure) {
  judge(name, "floor", floor, [=](const Interval& r) { return r.median >= floor; }, measure);
}

void at_most(const std::string& name, double ceiling, const std::function<Ratio()>& measure) {
  judge(name, "ceiling", ceiling, [=](const Interval& r) { return r.low <= ceiling; }, measure);
}

void only(std::string part) { part_of_name = std::move(part); }

int missed() { return count_of_missed; }

void print_machine() {
  const std::time_t now = std::time(nullptr);
  char date[32];
  std::strftime(date, sizeof date, "%Y-%m-%d", std::gmtime(&now));
  std::printf(
      "{\"date\": \"%s\", \"cpu\": \"%s\", \"family\": %s, \"model\": %s, \"isa\": \"%s\", "
      "\"processors\": %u, \"l2_kib\": %ld, \"l3_kib\": %ld}\n",
      date, cpuinfo("model name").c_str(), cpuinfo("cpu family").c_str(),
      cpuinfo("model\t").c_str(), std::string(cpu::isa_name(cpu::allowed_isa())).c_str(),
      std::thread::hardware_concurrency(), sysconf(_SC_LEVEL2_CACHE_SIZE) / 1024,
      sysconf(_SC_LEVEL3_CACHE_SIZE) / 1024);
  std::fflush(stdout);
}

}  // namespace hone::gates

#include "test/random/campaign.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <sstream>
#include <thread>

#include "base/log.h"
#include "base/random.h"
#include "verify/reduce/reduce.h"

namespace hone::fuzz {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point t) {
  return std::chrono::duration<double>(Clock::now() - t).count();
}

// Shared between the children and the parent.
struct Shared {
  static constexpr int most_jobs = 64;
  std::atomic<std::int64_t> next{0}, functions{0}, nodes{0}, comparisons{0}, explained{0},
      left_out{0};
  std::atomic<std::int64_t> current[most_jobs] = {};  // index, or -1
};

Shared* shared_memory() {
  void* p =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  return new (p) Shared;
}

std::string death_of(int status) {
  if (WIFSIGNALED(status))
    return WTERMSIG(status) == SIGALRM ? "took too long" : cat("signal ", WTERMSIG(status));
  return WIFEXITED(status) && WEXITSTATUS(status) ? cat("exit ", WEXITSTATUS(status)) : "";
}

// Serializes a finding for a pipe: the seed, then two strings for each failure.
void put(std::string& out, std::string_view text) {
  const auto n = static_cast<std::uint32_t>(text.size());
  out.append(reinterpret_cast<const char*>(&n), sizeof n);
  out.append(text);
}

std::string to_bytes(const Finding& f) {
  std::string out(reinterpret_cast<const char*>(&f.seed), sizeof f.seed);
  for (const Failure& x : f.failures) put(out, x.executor), put(out, x.what.substr(0, 1000));
  std::string message;
  put(message, out);
  return message;
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  bool has_more() const { return at_ + sizeof(std::uint32_t) <= bytes_.size(); }
  std::string_view text() {
    std::uint32_t n = 0;
    std::memcpy(&n, bytes_.data() + at_, sizeof n);
    at_ += sizeof n + n;
    return bytes_.substr(at_ - n, n);
  }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
};

std::vector<Finding> from_bytes(std::string_view bytes) {
  std::vector<Finding> out;
  for (Reader all(bytes); all.has_more();) {
    std::string_view one = all.text();
    Finding f;
    std::memcpy(&f.seed, one.data(), sizeof f.seed);
    for (Reader fields(one.substr(sizeof f.seed)); fields.has_more();) {
      std::string executor(fields.text());
      f.failures.push_back({executor, std::string(fields.text())});
    }
    out.push_back(std::move(f));
  }
  return out;
}

void write_all(int to, const std::string& bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    ssize_t n = ::write(to, bytes.data() + done, bytes.size() - done);
    if (n <= 0) return;
    done += static_cast<std::size_t>(n);
  }
}

std::string read_all(int from) {
  std::string bytes;
  char part[4096];
  for (ssize_t n = 0; (n = ::read(from, part, sizeof part)) > 0;)
    bytes.append(part, static_cast<std::size_t>(n));
  ::close(from);
  return bytes;
}

class Campaign {
 public:
  explicit Campaign(const CampaignOptions& options) : options_(options), shared_(shared_memory()) {
    int jobs = options.jobs ? options.jobs : static_cast<int>(std::thread::hardware_concurrency());
    jobs_.resize(static_cast<std::size_t>(std::min(jobs, Shared::most_jobs)));
  }
  ~Campaign() { munmap(shared_, sizeof(Shared)); }
  Campaign(const Campaign&) = delete;

  CampaignResult run() {
    for (std::size_t j = 0; j < jobs_.size(); ++j) start(j);
    for (int running = static_cast<int>(jobs_.size()); running > 0;) {
      int status = 0;
      const pid_t pid = ::waitpid(-1, &status, 0);
      for (std::size_t j = 0; j < jobs_.size(); ++j) {
        if (jobs_[j].pid != pid) continue;
        if (ended(j, status))
          start(j);
        else
          --running;
      }
    }
    result_.functions = shared_->functions;
    result_.nodes = shared_->nodes;
    result_.comparisons = shared_->comparisons;
    result_.explained = shared_->explained;
    result_.left_out = shared_->left_out;
    result_.seconds = seconds_since(start_);
    return std::move(result_);
  }

 private:
  struct Job {
    pid_t pid = 0;
    int findings = -1;  // an unnamed file
  };

  void start(std::size_t j) {
    std::FILE* file = std::tmpfile();
    if (!file) throw UserError("campaign: no temporary file; is the disk full?");
    jobs_[j].findings = ::dup(::fileno(file));
    std::fclose(file);
    shared_->current[j] = -1;
    std::fflush(nullptr);
    jobs_[j].pid = ::fork();
    if (jobs_[j].pid == 0) {
      work(j);
      std::fflush(nullptr);
      ::_exit(0);
    }
  }

  // Records how a child ended. Returns whether the job has more work.
  bool ended(std::size_t j, int status) {
    ::lseek(jobs_[j].findings, 0, SEEK_SET);
    for (Finding& f : from_bytes(read_all(jobs_[j].findings)))
      result_.findings.push_back(std::move(f));
    const std::int64_t at = shared_->current[j];
    std::string death = death_of(status);
    if (death.empty()) return false;
    if (at < 0)
      throw UserError("campaign: a child ended with ", death, " before its first function");
    result_.findings.push_back({options_.seed + static_cast<std::uint64_t>(at), {}, death});
    ++shared_->functions;
    return true;
  }

  void work(std::size_t j) {
    ScratchDirectory scratch;
    for (;;) {
      const std::int64_t i = shared_->next++;
      if (i >= options_.count) return;
      if (options_.seconds > 0 && seconds_since(start_) > options_.seconds) return;
      shared_->current[j] = i;
      ::alarm(static_cast<unsigned>(options_.most_seconds));
      one(options_.seed + static_cast<std::uint64_t>(i), jobs_[j].findings);
      ::alarm(0);
      scratch.empty_when_large();
    }
  }

  // A warning about a rejected candidate is a false alarm if the compiler is right.
  static void say(void* seed, const char* text) {
    std::fprintf(stderr, "seed %llu: warning: %s\n",
                 static_cast<unsigned long long>(*static_cast<std::uint64_t*>(seed)), text);
  }

  void one(std::uint64_t seed, int findings) {
    set_log_sink(say, &seed);
    const Case c = generate(seed, options_.nodes, options_.derivatives);
    Verdict v = check(c, choice_for(seed, options_));
    ++shared_->functions;
    shared_->nodes += static_cast<std::int64_t>(live_nodes(c.function).size());
    shared_->comparisons += v.comparisons;
    shared_->explained += v.explained;
    shared_->left_out += v.left_out;
    if (!v.failures.empty()) write_all(findings, to_bytes({seed, v.failures, ""}));
    set_log_sink(nullptr, nullptr);
  }

  const CampaignOptions& options_;
  Shared* shared_;
  std::vector<Job> jobs_;
  Clock::time_point start_ = Clock::now();
  CampaignResult result_;
};

}  // namespace

CampaignResult run_campaign(const CampaignOptions& options) { return Campaign(options).run(); }

Choice choice_for(std::uint64_t seed, const CampaignOptions& options) {
  if (options.all) return [](const Executor&) { return true; };
  const Executor* first = &executors().front();
  if (!options.only.empty())
    return [=, name = options.only](const Executor& e) { return &e == first || e.name == name; };
  auto random = std::make_shared<Random>(~seed);
  return [=](const Executor& e) { return random->chance(e.share); };
}

Finding try_apart(const Case& c, const Choice& choice, int most_seconds) {
  int ends[2];
  if (::pipe(ends)) throw UserError("campaign: no pipe: ", std::strerror(errno));
  std::fflush(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::close(ends[0]);
    ::alarm(static_cast<unsigned>(most_seconds));
    ScratchDirectory scratch;
    write_all(ends[1], to_bytes({0, check(c, choice).failures, ""}));
    ::_exit(0);
  }
  ::close(ends[1]);
  const std::string bytes = read_all(ends[0]);
  int status = 0;
  ::waitpid(pid, &status, 0);
  Finding out;
  if (std::vector<Finding> all = from_bytes(bytes); !all.empty()) out = all[0];
  out.death = death_of(status);
  return out;
}

namespace {

bool is_throw(const Failure& f) { return f.what.starts_with("throws: "); }

bool fails_alike(const Finding& now, const Finding& first) {
  if (!first.death.empty()) return now.death == first.death;
  for (const Failure& f : first.failures)
    for (const Failure& g : now.failures)
      if (f.executor == g.executor && is_throw(f) == is_throw(g)) return true;
  return false;
}

}  // namespace

Case minimised(const Case& c, const Finding& finding, const CampaignOptions& options) {
  // Only the executors that failed are run; if the process died, it is not known which one caused
  // it.
  Choice choice = [](const Executor&) { return true; };
  if (finding.death.empty())
    choice = [&](const Executor& e) {
      if (&e == &executors().front()) return true;
      for (const Failure& f : finding.failures)
        if (f.executor == e.name) return true;
      return false;
    };
  const Finding now = try_apart(c, choice, options.most_seconds);
  if (!fails_alike(now, finding)) return c;
  return reduced(c, [&](const Case& smaller) {
    return fails_alike(try_apart(smaller, choice, options.most_seconds), finding);
  });
}

std::string text_of(const Finding& f) {
  std::ostringstream out;
  if (!f.death.empty()) out << "the process died: " << f.death << "\n";
  for (const Failure& x : f.failures)
    out << (x.executor.empty() ? "text" : x.executor) << ": " << x.what << "\n";
  return out.str();
}

}  // namespace hone::fuzz

// Kernels as text, run by the interpreter: test/kernel/cases/*.txt hold memory and sizes, the
// kernel, and after "--" the resulting memory or error.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "kernel/interpret/interpret.h"

namespace hone::test {

namespace {

struct Case {
  std::string name, before, kernel, after;
};

// Cases begin with "== name".
std::vector<Case> read_cases(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::vector<Case> out;
  std::string* part = nullptr;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("== ")) {
      out.push_back({line.substr(3), "", "", ""});
      part = &out.back().before;
    } else if (!out.empty() && !line.empty()) {
      if (line.starts_with("kernel ")) part = &out.back().kernel;
      if (line == "--")
        part = &out.back().after;
      else
        *part += line + "\n";
    }
  }
  return out;
}

// "1 2.5 7..9" is 1, 2.5, 7, 8, 9.
std::vector<double> numbers(std::string_view text) {
  std::istringstream in{std::string(text)};
  std::vector<double> out;
  for (std::string word; in >> word;) {
    const std::size_t dots = word.find("..");
    if (dots == std::string::npos) {
      out.push_back(std::stod(word));
      continue;
    }
    for (int i = std::stoi(word); i <= std::stoi(word.substr(dots + 2)); ++i) out.push_back(i);
  }
  return out;
}

// Lines "word = rest".
std::vector<std::pair<std::string, std::string>> settings(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::pair<std::string, std::string>> out;
  for (std::string line; std::getline(in, line);) {
    const std::size_t at = line.find(" = ");
    if (at == std::string::npos)
      out.push_back({line, ""});
    else
      out.push_back({line.substr(0, at), line.substr(at + 3)});
  }
  return out;
}

Array memory_of(DType t, const std::vector<double>& values) {
  Array a = Array::zeros(t, {static_cast<std::int64_t>(values.size())});
  for (std::size_t i = 0; i < values.size(); ++i)
    a.set_real(static_cast<std::int64_t>(i), values[i]);
  return a;
}

class Runner {
 public:
  explicit Runner(const Case& c) : kernel_(parse_kernel(c.kernel)), sizes_(kernel_.sizes.size()) {
    memory_.resize(kernel_.params.size());
    for (const auto& [name, text] : settings(c.before)) {
      if (name == "check param races") checks_.param_races = true;
      if (name == "check unwritten") checks_.unwritten = true;
      for (std::size_t i = 0; i < kernel_.sizes.size(); ++i)
        if (kernel_.sizes[i].name() == name) sizes_[i] = std::stoll(text);
      for (std::size_t i = 0; i < kernel_.params.size(); ++i)
        if (name == cat("p", i)) memory_[i] = memory_of(kernel_.params[i].dtype, numbers(text));
    }
  }

  void run() {
    std::vector<std::span<std::byte>> params;
    for (Array& a : memory_) params.push_back(a.writable_bytes());
    interpret(kernel_, params, sizes_, checks_);
  }
  const Kernel& kernel() const { return kernel_; }
  const Array& memory(std::size_t i) const { return memory_.at(i); }

 private:
  Kernel kernel_;
  std::vector<std::int64_t> sizes_;
  std::vector<Array> memory_;
  InterpretChecks checks_;
};

std::string text_of(const Array& a) {
  std::string out;
  for (std::int64_t i = 0; i < a.count(); ++i) out += cat(i ? " " : "", a.real(i));
  return out;
}

void expect_error(Runner& runner, const std::string& part) {
  try {
    runner.run();
    ADD_FAILURE() << "ran to its end";
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

void check(const Case& c) {
  Runner runner(c);
  EXPECT_EQ(print(runner.kernel()), c.kernel);
  const auto after = settings(c.after);
  ASSERT_FALSE(after.empty());
  if (after[0].first == "error") return expect_error(runner, after[0].second);
  runner.run();
  for (const auto& [name, text] : after) {
    const Array& got = runner.memory(static_cast<std::size_t>(std::stoi(name.substr(1))));
    EXPECT_EQ(text_of(got), text_of(memory_of(got.dtype(), numbers(text)))) << name;
  }
}

TEST(KernelCases, DoWhatTheySay) {
  int cases = 0;
  for (const auto& file : std::filesystem::directory_iterator(HONE_SOURCE_DIR "/test/kernel/cases"))
    for (const Case& c : read_cases(file.path())) {
      SCOPED_TRACE(cat(file.path().filename().string(), ": ", c.name, "\n", c.kernel));
      EXPECT_NO_THROW(check(c));
      ++cases;
    }
  EXPECT_GE(cases, 40);
}

}  // namespace

}  // namespace hone::test

// C source compiled by the system's compilers into a shared object, and loaded.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <future>
#include <string>
#include <vector>

#include "backend/cpu/device/kernel_abi.h"
#include "base/error.h"
#include "base/file.h"
#include "base/process.h"

namespace hone::test {

// The flags with which generated C must compile without warnings.
inline const std::vector<std::string>& strict_warnings() {
  // For some native machines clang 19 selects a combination of features that it warns about.
  static const std::vector<std::string> flags = {"-Wall",      "-Wextra",
                                                 "-Wpedantic", "-Wconversion",
                                                 "-Werror",    "-Wno-invalid-feature-combination"};
  return flags;
}

// Path of a compiler. Without one the generated C is untested, so the test fails and says what to
// install.
inline std::string compiler(const std::string& name = "gcc") {
  if (auto found = find_program(name)) return found->string();
  throw UserError(name, ": is not in PATH, so generated C cannot be tested; run tools/setup");
}

// A directory that is removed with its owner.
class TemporaryDirectory {
 public:
  explicit TemporaryDirectory(const std::string& name) {
    static int count = 0;
    path_ = std::filesystem::temp_directory_path() / cat(name, "_", ::getpid(), "_", count++);
    std::filesystem::create_directories(path_);
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline void compile_c(const std::vector<std::string>& arguments) {
  ProcessResult r = run_process(arguments);
  if (r.status == 0) return;
  std::string line;
  for (const std::string& a : arguments) line += a + " ";
  throw UserError(line, "\nends with ", r.status, ":\n", r.output.substr(0, 4000));
}

class CLibrary {
 public:
  // Each source is a file of its own; two are compiled at a time.
  explicit CLibrary(const std::vector<std::string>& sources,
                    const std::vector<std::string>& flags = {"-std=c11", "-O3", "-march=native"},
                    const std::string& cc = "gcc")
      : directory_("hone_c_library") {
    std::vector<std::string> link = {compiler(cc), "-shared", "-o", path("library.so")};
    std::vector<std::future<void>> running;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      write_atomic(path(cat("part", i, ".c")), sources[i]);
      std::vector<std::string> command = {compiler(cc)};
      for (const auto* list : {&flags, &strict_warnings()})
        command.insert(command.end(), list->begin(), list->end());
      const std::string object = path(cat("part", i, ".o"));
      for (const std::string& word : {std::string("-fPIC"), std::string("-c"),
                                      path(cat("part", i, ".c")), std::string("-o"), object})
        command.push_back(word);
      link.push_back(object);
      if (running.size() >= 2) running[running.size() - 2].get();
      running.push_back(std::async(std::launch::async, [command] { compile_c(command); }));
    }
    for (auto& r : running)
      if (r.valid()) r.get();
    link.push_back("-lm");
    compile_c(link);
    handle_ = ::dlopen(path("library.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle_) throw UserError(::dlerror());
  }
  ~CLibrary() {
    if (handle_) ::dlclose(handle_);
  }
  CLibrary(const CLibrary&) = delete;
  CLibrary& operator=(const CLibrary&) = delete;

  void* symbol(const std::string& name) const {
    void* found = ::dlsym(handle_, name.c_str());
    if (!found) throw UserError(name, ": is not in the library");
    return found;
  }
  KernelFunction kernel(const std::string& name) const {
    return reinterpret_cast<KernelFunction>(symbol(name));
  }

 private:
  std::string path(const std::string& name) const { return (directory_.path() / name).string(); }

  TemporaryDirectory directory_;
  void* handle_ = nullptr;
};

}  // namespace hone::test

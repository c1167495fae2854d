#include "test/onnx/suite.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/error.h"

namespace hone::conformance {

namespace fs = std::filesystem;

namespace {

constexpr const char* data_folder = "onnx/backend/test/data";

bool is_suite(const fs::path& p) { return fs::is_directory(p / "node"); }

bool is_archive(const fs::path& p) {
  return fs::is_regular_file(p) && p.filename().string().find(".tar") != std::string::npos;
}

std::string quoted(const fs::path& p) { return "'" + p.string() + "'"; }

// Unpacks into a temporary folder and renames it, so that an incomplete one is never used.
fs::path unpacked(const fs::path& archive, const fs::path& cache) {
  const fs::path to = cache / cat(archive.filename().string(), "-", fs::file_size(archive));
  if (is_suite(to / data_folder)) return to / data_folder;
  const fs::path part = cat(to.string(), ".part-", ::getpid());
  fs::create_directories(part);
  const std::string command = cat("tar -xf ", quoted(archive), " -C ", quoted(part));
  if (std::system(command.c_str()) != 0)
    throw UserError(archive.string(), ": could not be unpacked by: ", command,
                    "; are tar and xz installed?");
  std::error_code taken;  // another process may have created it
  fs::rename(part, to, taken);
  if (taken) fs::remove_all(part);
  if (!is_suite(to / data_folder))
    throw UserError(archive.string(), ": holds no ", data_folder, "/node");
  return to / data_folder;
}

std::optional<fs::path> archive_in(const fs::path& folder) {
  std::vector<fs::path> found;
  if (fs::is_directory(folder))
    for (const fs::directory_entry& e : fs::directory_iterator(folder))
      if (e.path().filename().string().starts_with("onnx_backend_test_data") &&
          is_archive(e.path()))
        found.push_back(e.path());
  if (found.empty()) return std::nullopt;
  return *std::max_element(found.begin(), found.end());
}

// The usual folders of Python packages.
std::vector<fs::path> package_folders() {
  std::vector<fs::path> out, roots = {"/usr/lib", "/usr/local/lib"};
  if (const char* venv = std::getenv("VIRTUAL_ENV")) roots.push_back(fs::path(venv) / "lib");
  if (const char* home = std::getenv("HOME")) roots.push_back(fs::path(home) / ".local/lib");
  for (const fs::path& root : roots) {
    if (!fs::is_directory(root)) continue;
    for (const fs::directory_entry& e : fs::directory_iterator(root))
      if (e.path().filename().string().starts_with("python3"))
        for (const char* name : {"site-packages", "dist-packages"}) out.push_back(e.path() / name);
  }
  return out;
}

std::vector<fs::path> sorted_entries(const fs::path& folder) {
  std::vector<fs::path> out;
  for (const fs::directory_entry& e : fs::directory_iterator(folder)) out.push_back(e.path());
  std::sort(out.begin(), out.end());
  return out;
}

void add_folder(const fs::path& folder, std::vector<Case>& out) {
  Case c{cat(folder.parent_path().filename().string(), "/", folder.filename().string()),
         folder / "model.onnx",
         {}};
  if (!fs::exists(c.model)) return;
  for (int i = 0; fs::is_directory(folder / cat("test_data_set_", i)); ++i)
    c.sets.push_back(folder / cat("test_data_set_", i));
  if (c.sets.empty()) throw UserError(folder.string(), ": has a model and no test_data_set_0");
  out.push_back(std::move(c));
}

}  // namespace

std::optional<fs::path> find_suite(const fs::path& checkout, const fs::path& cache) {
  if (const char* given = std::getenv("HONE_ONNX_TESTS")) {
    const fs::path p = given;
    if (is_archive(p)) return unpacked(p, cache);
    for (const fs::path& inner : {p, p / data_folder})
      if (is_suite(inner)) return inner;
    throw UserError("HONE_ONNX_TESTS=", given,
                    " is neither an archive of the suite nor its folder ", data_folder);
  }
  for (const char* shared : {"../shared/onnx", "../../shared/onnx"})
    if (auto archive = archive_in(checkout / shared)) return unpacked(*archive, cache);
  for (const fs::path& packages : package_folders())
    if (is_suite(packages / data_folder)) return packages / data_folder;
  return std::nullopt;
}

std::vector<Case> list_cases(const fs::path& suite) {
  std::vector<Case> out;
  for (const fs::path& kind : sorted_entries(suite)) {
    if (!fs::is_directory(kind)) continue;
    for (const fs::path& entry : sorted_entries(kind)) {
      if (kind.filename() == "light") {
        if (entry.extension() == ".onnx")
          out.push_back({"light/" + entry.stem().string(), entry, {}});
      } else if (fs::is_directory(entry)) {
        add_folder(entry, out);
      }
    }
  }
  return out;
}

}  // namespace hone::conformance

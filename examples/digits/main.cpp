// Loads a plan of the digits network and counts how many held-out images it classifies correctly.
// Needs only the runtime library: no compiler, no model file.
// usage: digits PLAN.hone IMAGES.npy LABELS.npy [LOGITS.npy of another run to compare with]

#include <hone/runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

// The numbers of a NumPy file. The caller knows its dtype ('<f4', '<i8') and row length.
template <class T>
std::vector<T> read_npy(const std::string& path, const char* dtype, std::size_t row) {
  std::ifstream file(path, std::ios::binary);
  char start[10];
  if (!file.read(start, sizeof start) || std::memcmp(start, "\x93NUMPY\x01", 7) != 0)
    throw std::runtime_error(path + ": not a NumPy file of version 1");
  std::string header(
      static_cast<unsigned char>(start[8]) + 256 * static_cast<unsigned char>(start[9]), ' ');
  file.read(header.data(), static_cast<std::streamsize>(header.size()));
  if (header.find(dtype) == std::string::npos || header.find("True") != std::string::npos)
    throw std::runtime_error(path + ": expected rows of " + dtype + ", found " + header);
  std::string bytes(std::istreambuf_iterator<char>(file), {});
  if (bytes.empty() || bytes.size() % (row * sizeof(T)) != 0)
    throw std::runtime_error(path + ": not whole rows");
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::vector<std::int64_t> answers(const std::vector<float>& logits) {
  std::vector<std::int64_t> digits;
  for (auto row = logits.begin(); row != logits.end(); row += 10)
    digits.push_back(std::max_element(row, row + 10) - row);
  return digits;
}

int count_equal(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  if (a.size() != b.size()) throw std::runtime_error("the files hold different numbers of images");
  int n = 0;
  for (std::size_t i = 0; i < a.size(); ++i) n += a[i] == b[i];
  return n;
}

void print_accuracy(const char* who, const std::vector<std::int64_t>& digits,
                    const std::vector<std::int64_t>& labels) {
  int right = count_equal(digits, labels);
  std::printf("%-10s %d of %zu held-back images right (%.2f %%)\n", who, right, labels.size(),
              100.0 * right / static_cast<double>(labels.size()));
}

std::vector<float> run(const std::string& plan, const std::vector<float>& images) {
  hone::runtime::Executable executable(plan);
  hone::runtime::Session session(executable);
  const auto n = static_cast<std::int64_t>(images.size() / 64);
  std::vector<float> logits(static_cast<std::size_t>(n) * 10);
  session.bind_input(0, {n, 1, 8, 8}, images);
  session.bind_output(0, {n, 10}, logits);
  session.run();
  return logits;
}

int report(int argc, char** argv) {
  std::vector<float> images = read_npy<float>(argv[2], "'<f4'", 64);
  std::vector<std::int64_t> labels = read_npy<std::int64_t>(argv[3], "'<i8'", 1);
  std::vector<std::int64_t> digits = answers(run(argv[1], images));
  print_accuracy("plan", digits, labels);
  if (argc < 5) return 0;
  std::vector<std::int64_t> others = answers(read_npy<float>(argv[4], "'<f4'", 10));
  print_accuracy("reference", others, labels);
  int equal = count_equal(digits, others);
  std::printf("%-10s %d of %zu answers\n", "equal", equal, labels.size());
  return equal == static_cast<int>(labels.size()) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: digits PLAN.hone IMAGES.npy LABELS.npy [LOGITS.npy]\n");
    return 2;
  }
  try {
    return report(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "digits: %s\n", e.what());
    return 1;
  }
}

// The program of load.c through the C++ header. usage: load PLAN
#include <hone/runtime.h>

#include <cstdio>

int main(int argc, char** argv) try {
  if (argc != 2) return 2;
  std::vector<float> image(64), logits(10);
  for (int i = 0; i < 64; ++i) image[i] = static_cast<float>(i % 17) / 16;
  hone::runtime::Executable executable(argv[1]);
  hone::runtime::Session session(executable, {.threads = 2});
  session.bind_input(0, {1, 1, 8, 8}, image);
  session.bind_output(0, {1, 10}, logits);
  session.run();
  for (float x : logits) std::printf("%.9g\n", static_cast<double>(x));
} catch (const hone::runtime::Error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}

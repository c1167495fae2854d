// File system entries that are not regular files, and external data outside the model's directory.
#include <sys/stat.h>

#include <fstream>

#include "test/hostile/hostile.h"

namespace hone::hostile {

namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

// A model with an initializer of shape `dims` stored in other files.
Make external(Pairs pairs, std::vector<std::int64_t> dims = {4},
              std::function<void(const fs::path& directory)> prepare = nullptr) {
  return [=](const fs::path& file) {
    std::ofstream(file.parent_path() / "weights.bin", std::ios::binary) << std::string(64, '\1');
    if (prepare) prepare(file.parent_path());
    model([&](ModelBuilder& b) {
      onnx_pb::Tensor* t = b.model.mutable_graph()->add_initializer();
      t->set_name("w");
      t->set_data_type(1);
      t->set_data_location(1);
      for (std::int64_t d : dims) t->add_dims(d);
      for (const auto& [key, value] : pairs) {
        onnx_pb::Pair* p = t->add_external_data();
        p->set_key(key);
        p->set_value(value);
      }
      b.node("Relu", {"w"}, {"y"});
      b.output("y");
    })(file);
  };
}

Make at(const std::string& location) { return external({{"location", location}}); }

void make_link(const fs::path& directory) {
  fs::create_symlink("/etc/hostname", directory / "link.bin");
}
void make_directory_link(const fs::path& directory) {
  fs::create_directory_symlink("/etc", directory / "sub");
}
void make_fifo(const fs::path& directory) { ::mkfifo((directory / "pipe.bin").c_str(), 0600); }
void make_sparse(const fs::path& directory) {
  std::ofstream(directory / "sparse.bin").put('x');
  fs::resize_file(directory / "sparse.bin", std::uintmax_t{1} << 30);
}

}  // namespace

Cases file_cases() {
  const char* outside = "external data cannot be opened below ";
  return {
      {"no_such_file", [](const fs::path&) {}, imported, "cannot be opened: No such file"},
      {"directory", [](const fs::path& f) { fs::create_directory(f); }, imported,
       "is not a regular file; give a file, not a directory or device"},
      {"fifo", [](const fs::path& f) { ::mkfifo(f.c_str(), 0600); }, imported,
       "is not a regular file; give a file, not a directory or device"},
      {"device", [](const fs::path& f) { fs::create_symlink("/dev/zero", f); }, imported,
       "is not a regular file; give a file, not a directory or device"},
      {"link_to_itself", [](const fs::path& f) { fs::create_symlink(f, f); }, imported,
       "cannot be opened: Too many levels of symbolic links"},
      {"sparse_1_gib",
       [](const fs::path& f) {
         bytes(good_model())(f);
         fs::resize_file(f, std::uintmax_t{1} << 30);
       },
       imported, "field number 0 is invalid"},
      {"name_with_newline", bytes(good_model()), imported, "read: 1 variants", "a\nb.onnx"},
      {"ext_good", at("weights.bin"), imported, "read: 1 variants"},
      {"ext_parent", at("../weights.bin"), imported, outside},
      {"ext_parent_inside", at("sub/../../weights.bin"), imported, outside},
      {"ext_dot_dot", at(".."), imported, outside},
      {"ext_dot", at("."), imported, "is not a regular file"},
      {"ext_absolute", at("/etc/hostname"), imported, outside},
      {"ext_uri", at("file:///etc/hostname"), imported, outside},
      {"ext_empty", at(""), imported, "external data location is empty or contains a zero byte"},
      {"ext_no_location", external({}), imported, "external data location is empty"},
      {"ext_zero_byte", at(std::string("weights.bin\0.txt", 16)), imported,
       "external data location is empty or contains a zero byte"},
      {"ext_long_name", at(std::string(100'000, 'a')), imported, "tensor 'w': aaaa"},
      {"ext_symlink", external({{"location", "link.bin"}}, {4}, make_link), imported, outside},
      {"ext_directory_symlink", external({{"location", "sub/hostname"}}, {4}, make_directory_link),
       imported, outside},
      {"ext_fifo", external({{"location", "pipe.bin"}}, {4}, make_fifo), imported,
       "is not a regular file"},
      {"ext_proc", at("/proc/self/mem"), imported, outside},
      {"ext_itself", at("model.onnx"), imported, "read: 1 variants"},
      {"ext_missing", at("none.bin"), imported, "No such file"},
      {"ext_offset_past_end", external({{"location", "weights.bin"}, {"offset", "64"}}), imported,
       "external data: 16 bytes at offset 64 run past the end of 'weights.bin', which has 64"},
      {"ext_offset_2_64_less_4",
       external({{"location", "weights.bin"}, {"offset", "18446744073709551612"}}), imported,
       "external data: 16 bytes at offset 18446744073709551612 run past the end"},
      {"ext_offset_negative", external({{"location", "weights.bin"}, {"offset", "-1"}}), imported,
       "external data: offset is '-1', expected a number of bytes"},
      {"ext_offset_too_long",
       external({{"location", "weights.bin"}, {"offset", "99999999999999999999999"}}), imported,
       "expected a number of bytes"},
      {"ext_length_lies", external({{"location", "weights.bin"}, {"length", "8"}}), imported,
       "external data: length is 8 bytes, expected 16"},
      {"ext_length_huge", external({{"location", "weights.bin"}}, {std::int64_t{1} << 40}),
       imported, "external data: 4398046511104 bytes at offset 0 run past the end"},
      {"ext_sparse_1_gib",
       external({{"location", "sparse.bin"}}, {std::int64_t{1} << 28}, make_sparse), imported,
       "read: 1 variants"},
      // A library that a model names is not even opened: opening this one would block forever.
      {"library_in_metadata",
       [](const fs::path& file) {
         ::mkfifo((file.parent_path() / "evil.so").c_str(), 0600);
         const std::string library = (file.parent_path() / "evil.so").string();
         const std::string node = bytes_field(1, "x") + bytes_field(2, "y") +
                                  bytes_field(4, "Evil") + bytes_field(7, library);
         const std::string entry =
             bytes_field(1, "ort.custom_ops.library") + bytes_field(2, library);
         bytes(number_field(1, 10) + bytes_field(8, bytes_field(1, "") + number_field(2, 21)) +
               bytes_field(8, bytes_field(1, library) + number_field(2, 1)) +
               bytes_field(7, bytes_field(1, node) + bytes_field(11, bytes_field(1, "x")) +
                                  bytes_field(12, bytes_field(1, "y"))) +
               bytes_field(14, entry))(file);
       },
       imported, "refused: "},
      {"ext_key_unknown", external({{"location", "weights.bin"}, {"library", "/tmp/evil.so"}}),
       imported, "read: 1 variants"},
  };
}

}  // namespace hone::hostile

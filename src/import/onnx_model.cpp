#include "import/onnx_model.h"

#include <charconv>

#include "base/checked.h"

namespace hone::onnx {

namespace {

using wire::Reader;

void read_string_entry(Reader r, std::map<std::string_view, std::string_view>& into) {
  std::string_view key, value;
  while (r.next()) {
    if (r.field() == 1)
      key = r.text();
    else if (r.field() == 2)
      value = r.text();
    else
      r.skip();
  }
  into[key] = value;
}

Tensor read_tensor_message(Reader r) {
  Tensor t;
  while (r.next()) switch (r.field()) {
      case 1:
        r.integers(t.dims);
        break;
      case 2:
        t.data_type = r.integer();
        break;
      case 4:
        r.fixed_list(t.floats);
        break;
      case 5:
      case 7:
      case 11:
        r.integers(t.integers);
        break;
      case 6:
        t.strings.push_back(r.text());
        break;
      case 8:
        t.name = r.text();
        break;
      case 9:
        t.raw = r.bytes();
        break;
      case 10:
        r.fixed_list(t.doubles);
        break;
      case 13:
        read_string_entry(r.message(), t.external_data);
        break;
      case 14:
        t.external = r.integer() == 1;
        break;
      default:
        r.skip();
    }
  return t;
}

Size read_size(Reader r) {
  Size s;
  while (r.next()) {
    if (r.field() == 1)
      s.number = r.integer();
    else if (r.field() == 2)
      s.symbol = r.text();
    else
      r.skip();
  }
  return s;
}

void read_tensor_type(Reader r, ValueInfo& v) {
  while (r.next()) {
    if (r.field() == 1) {
      v.data_type = r.integer();
    } else if (r.field() == 2) {
      v.has_shape = true;
      Reader shape = r.message();
      while (shape.next()) {
        if (shape.field() == 1)
          v.sizes.push_back(read_size(shape.message()));
        else
          shape.skip();
      }
    } else {
      r.skip();
    }
  }
}

ValueInfo read_value_info(Reader r) {
  ValueInfo v;
  while (r.next()) {
    if (r.field() == 1) {
      v.name = r.text();
    } else if (r.field() == 2) {
      Reader type = r.message();
      while (type.next()) {
        if (type.field() == 1)
          read_tensor_type(type.message(), v);
        else
          type.skip();
      }
    } else {
      r.skip();
    }
  }
  return v;
}

Graph read_graph(Reader r);

Attribute read_attribute(Reader r) {
  Attribute a;
  while (r.next()) switch (r.field()) {
      case 1:
        a.name = r.text();
        break;
      case 2:
        a.real = r.real32();
        break;
      case 3:
        a.integer = r.integer();
        break;
      case 4:
        a.text = r.text();
        break;
      case 5:
      case 10:
        a.tensors.push_back(read_tensor_message(r.message()));
        break;
      case 6:
      case 11:
        a.graphs.push_back(std::make_shared<Graph>(read_graph(r.message())));
        break;
      case 7:
        r.fixed_list(a.reals);
        break;
      case 8:
        r.integers(a.integers);
        break;
      case 9:
        a.texts.push_back(r.text());
        break;
      case 20: {
        std::int64_t kind = r.integer();
        if (kind < 0 || kind > 14) r.fail(cat("attribute type ", kind));
        a.kind = static_cast<Attribute::Kind>(kind);
        break;
      }
      case 21:
        a.reference = r.text();
        break;
      default:
        r.skip();
    }
  return a;
}

Node read_node(Reader r) {
  Node n;
  while (r.next()) switch (r.field()) {
      case 1:
        n.inputs.push_back(r.text());
        break;
      case 2:
        n.outputs.push_back(r.text());
        break;
      case 3:
        n.name = r.text();
        break;
      case 4:
        n.op = r.text();
        break;
      case 5:
        n.attributes.push_back(read_attribute(r.message()));
        break;
      case 7:
        n.domain = r.text();
        break;
      default:
        r.skip();
    }
  return n;
}

Graph read_graph(Reader r) {
  Graph g;
  while (r.next()) switch (r.field()) {
      case 1:
        g.nodes.push_back(read_node(r.message()));
        break;
      case 2:
        g.name = r.text();
        break;
      case 5:
        g.initializers.push_back(read_tensor_message(r.message()));
        break;
      case 11:
        g.inputs.push_back(read_value_info(r.message()));
        break;
      case 12:
        g.outputs.push_back(read_value_info(r.message()));
        break;
      case 15:
        g.has_sparse_initializers = true;
        r.skip();
        break;
      default:
        r.skip();
    }
  return g;
}

void read_opset(Reader r, Model& m) {
  std::string_view domain;
  std::int64_t version = 0;
  while (r.next()) {
    if (r.field() == 1)
      domain = r.text();
    else if (r.field() == 2)
      version = r.integer();
    else
      r.skip();
  }
  m.opsets[domain == "ai.onnx" ? "" : domain] = version;
}

std::int64_t number_in(const Tensor& t, std::string_view key, std::int64_t fallback) {
  auto it = t.external_data.find(key);
  if (it == t.external_data.end()) return fallback;
  std::int64_t n = 0;
  auto [end, error] = std::from_chars(it->second.data(), it->second.data() + it->second.size(), n);
  if (error != std::errc() || end != it->second.data() + it->second.size() || n < 0)
    throw UserError("tensor '", t.name, "': external ", key, " '", it->second,
                    "' is not a size; the model file is broken");
  return n;
}

// Sizes are checked against the file before anything is mapped into an array.
Array external_array(const Tensor& t, DType dtype, std::int64_t bytes,
                     const std::filesystem::path& directory) {
  auto location = t.external_data.find("location");
  if (location == t.external_data.end())
    throw UserError("tensor '", t.name, "': external data without a location");
  auto file = MappedFile::open_contained(directory, location->second);
  std::int64_t offset = number_in(t, "offset", 0);
  std::int64_t length = number_in(t, "length", bytes);
  if (length != bytes ||
      checked_add(offset, length) > static_cast<std::int64_t>(file->bytes().size()))
    throw UserError("tensor '", t.name, "': ", length, " bytes at ", offset, " of ", file->path(),
                    " (", file->bytes().size(), " bytes) for a tensor of ", bytes,
                    " bytes; the model and its data do not belong together");
  auto view =
      file->bytes().subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(length));
  return Array(dtype, t.dims, Storage(file, view));
}

template <class List>
void require_count(const Tensor& t, const List& list, std::int64_t count) {
  if (static_cast<std::int64_t>(list.size()) != count)
    throw UserError("tensor '", t.name, "': holds ", list.size(), " numbers, its dims need ",
                    count);
}

}  // namespace

const Attribute* Node::find(std::string_view attribute) const {
  for (const Attribute& a : attributes)
    if (a.name == attribute) return &a;
  return nullptr;
}

std::int64_t Model::opset(std::string_view domain) const {
  auto it = opsets.find(domain == "ai.onnx" ? "" : domain);
  return it == opsets.end() ? 0 : it->second;
}

Model read_model(const std::filesystem::path& path) {
  Model m;
  m.file = MappedFile::open(path);
  m.directory = path.parent_path();
  bool has_graph = false;
  try {
    Reader r(m.file->bytes(), m.file->bytes());
    while (r.next()) switch (r.field()) {
        case 1:
          m.ir_version = r.integer();
          break;
        case 7:
          m.graph = read_graph(r.message());
          has_graph = true;
          break;
        case 8:
          read_opset(r.message(), m);
          break;
        case 25:
          ++m.functions;
          r.skip();
          break;
        default:
          r.skip();
      }
  } catch (const UserError& e) {
    throw UserError(path.string(), ": ", e.what(), "; is it an ONNX model, and complete?");
  }
  if (!has_graph) throw UserError(path.string(), ": holds no graph; is it an ONNX model?");
  return m;
}

Tensor read_tensor(wire::Bytes message, wire::Bytes file) {
  return read_tensor_message(Reader(message, file));
}

std::optional<DType> dtype_of(std::int64_t data_type) {
  switch (data_type) {
    case 1:
      return DType::f32;
    case 2:
      return DType::u8;
    case 3:
      return DType::i8;
    case 4:
      return DType::u16;
    case 5:
      return DType::i16;
    case 6:
      return DType::i32;
    case 7:
      return DType::i64;
    case 9:
      return DType::b1;
    case 10:
      return DType::f16;
    case 11:
      return DType::f64;
    case 12:
      return DType::u32;
    case 13:
      return DType::u64;
    case 16:
      return DType::bf16;
    default:
      return std::nullopt;
  }
}

std::string data_type_name(std::int64_t t) {
  static constexpr std::string_view names[] = {
      "undefined", "float",  "uint8",     "int8",       "uint16",  "int16",
      "int32",     "int64",  "string",    "bool",       "float16", "double",
      "uint32",    "uint64", "complex64", "complex128", "bfloat16"};
  if (t >= 0 && t < static_cast<std::int64_t>(std::size(names)))
    return std::string(names[static_cast<std::size_t>(t)]);
  return cat("data type ", t);
}

Array to_array(const Tensor& t, const std::shared_ptr<const void>& owner,
               const std::filesystem::path& directory) {
  std::optional<DType> dtype = dtype_of(t.data_type);
  if (!dtype)
    throw UserError("tensor '", t.name, "': ", data_type_name(t.data_type),
                    " tensors are not supported yet");
  std::int64_t count = 1;
  for (std::int64_t d : t.dims) {
    if (d < 0) throw UserError("tensor '", t.name, "': size ", d, " is negative");
    count = checked_mul(count, d);
  }
  std::int64_t bytes = checked_mul(count, byte_size(*dtype));
  if (t.external) return external_array(t, *dtype, bytes, directory);
  if (t.raw) {
    if (static_cast<std::int64_t>(t.raw->size()) != bytes)
      throw UserError("tensor '", t.name, "': holds ", t.raw->size(), " bytes, its dims need ",
                      bytes);
    return Array(*dtype, t.dims, Storage(owner, *t.raw));
  }
  if (*dtype == DType::f32) {
    require_count(t, t.floats, count);
    return Array::of<float>(*dtype, t.dims, t.floats);
  }
  if (*dtype == DType::f64) {
    require_count(t, t.doubles, count);
    return Array::of<double>(*dtype, t.dims, t.doubles);
  }
  require_count(t, t.integers, count);
  Array a = Array::zeros(*dtype, t.dims);
  const bool half = *dtype == DType::f16 || *dtype == DType::bf16;  // int32_data holds their bits
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t n = t.integers[static_cast<std::size_t>(i)];
    if (half)
      a.writable<std::uint16_t>()[static_cast<std::size_t>(i)] = static_cast<std::uint16_t>(n);
    else
      a.set_integer(i, n);
  }
  return a;
}

}  // namespace hone::onnx

#include "codegen/llvm/blob.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "base/error.h"

namespace hone::llvm {

namespace {

// ---- ELF64, little-endian, relocatable: the fields used (System V ABI, x86-64 supplement)

struct Header {
  unsigned char ident[16];
  std::uint16_t type, machine;
  std::uint32_t version;
  std::uint64_t entry, program_headers, section_headers;
  std::uint32_t flags;
  std::uint16_t size, program_header_size, program_header_count, section_header_size,
      section_header_count, section_names;
};
struct Section {
  std::uint32_t name, type;
  std::uint64_t flags, address, offset, size;
  std::uint32_t link, info;
  std::uint64_t align, entry_size;
};
struct Symbol {
  std::uint32_t name;
  std::uint8_t info, other;
  std::uint16_t section;
  std::uint64_t value, size;
};
struct Relocation {
  std::uint64_t offset;
  std::uint32_t type, symbol;
  std::int64_t addend;
};
static_assert(sizeof(Header) == 64 && sizeof(Section) == 64 && sizeof(Symbol) == 24 &&
              sizeof(Relocation) == 24);

enum SectionType : std::uint32_t { symbol_table = 2, relocations = 4, no_bits = 8 };
enum SectionFlag : std::uint64_t { writable = 1, allocated = 2, executable = 4 };
enum SymbolKind : std::uint8_t { function_symbol = 2, section_symbol = 3 };
enum RelocationType : std::uint32_t {
  pc32 = 2,
  plt32 = 4,
  got_pc_relative = 9,
  got_pc_relative_x = 41,
  rex_got_pc_relative_x = 42,
};
constexpr std::uint16_t undefined_section = 0, first_reserved_section = 0xff00;
constexpr std::uint8_t local_binding = 0;

template <class T>
T read(std::span<const std::byte> bytes, std::uint64_t at) {
  HONE_ASSERT(at <= bytes.size() && sizeof(T) <= bytes.size() - at, "object file ends at ",
              bytes.size(), ", read at ", at);
  T out;
  std::memcpy(&out, bytes.data() + at, sizeof out);
  return out;
}

template <class T>
std::vector<T> read_table(std::span<const std::byte> bytes, std::uint64_t at, std::uint64_t count) {
  HONE_ASSERT(at <= bytes.size() && count <= (bytes.size() - at) / sizeof(T),
              "a table of the object file leaves it");
  std::vector<T> out(count);
  if (count) std::memcpy(out.data(), bytes.data() + at, count * sizeof(T));
  return out;
}

struct Elf {
  std::span<const std::byte> bytes;
  std::vector<Section> sections;
  std::vector<Symbol> symbols;
  const Section* names = nullptr;                       // of symbols
  std::vector<std::vector<Relocation>> relocations_of;  // by section

  explicit Elf(std::span<const std::byte> object);
  std::string name(const Symbol& s) const;
  std::span<const std::byte> content(const Section& s) const;
};

Elf::Elf(std::span<const std::byte> object) : bytes(object) {
  Header h = read<Header>(bytes, 0);
  HONE_ASSERT(std::memcmp(h.ident, "\177ELF\2\1", 6) == 0 && h.type == 1 && h.machine == 62,
              "not a relocatable x86-64 object");
  sections = read_table<Section>(bytes, h.section_headers, h.section_header_count);
  relocations_of.resize(sections.size());
  for (const Section& s : sections) {
    if (s.type == SectionType::symbol_table) {
      symbols = read_table<Symbol>(bytes, s.offset, s.size / sizeof(Symbol));
      names = &sections.at(s.link);
    }
    if (s.type == SectionType::relocations)
      relocations_of.at(s.info) =
          read_table<Relocation>(bytes, s.offset, s.size / sizeof(Relocation));
  }
}

std::span<const std::byte> Elf::content(const Section& s) const {
  HONE_ASSERT(s.offset <= bytes.size() && s.size <= bytes.size() - s.offset,
              "a section leaves the object file");
  return bytes.subspan(s.offset, s.size);
}

std::string Elf::name(const Symbol& s) const {
  std::span<const std::byte> text = content(*names);
  HONE_ASSERT(s.name < text.size(), "a symbol's name leaves the object file");
  const char* start = reinterpret_cast<const char*>(text.data()) + s.name;
  return std::string(start, ::strnlen(start, text.size() - s.name));
}

// ---- linking

constexpr std::uint64_t not_placed = ~std::uint64_t{0};
constexpr std::uint64_t blob_align = 64;

struct Place {
  std::size_t object;
  std::uint32_t section;
};
struct Definition {
  Place place;
  std::uint64_t value;
  bool is_function;
};

std::uint8_t kind(const Symbol& s) { return s.info & 15; }
std::uint8_t binding(const Symbol& s) { return s.info >> 4; }
bool is_function(const Symbol& s) { return kind(s) == function_symbol; }
bool is_defined(const Symbol& s) {
  return s.section != undefined_section && s.section < first_reserved_section;
}

class Linker {
 public:
  Linker(std::span<const Object> objects, std::string_view target) {
    out_.target = target;
    for (const Object& o : objects) elves_.emplace_back(o);
    for (const Elf& e : elves_) offsets_.emplace_back(e.sections.size(), not_placed);
  }

  Binary run() {
    define_globals();
    for (const auto& [name, definition] : globals_)
      if (definition.is_function) reach(definition.place);
    place_sections();
    for (Place p : reached_) relocate(p);
    name_entries();
    check(out_, "linked code");
    return std::move(out_);
  }

 private:
  void define_globals();
  void reach(Place first);
  void place_sections();
  void relocate(Place);
  void apply(const Elf&, std::size_t object, std::uint64_t base, const Relocation&);
  void relax_got(std::uint64_t at, std::uint64_t target, const std::string& name);
  void name_entries();

  const Section& section(Place p) const { return elves_[p.object].sections.at(p.section); }
  std::uint64_t& offset(Place p) { return offsets_[p.object].at(p.section); }
  std::optional<Definition> find(const Elf&, std::size_t object, const Symbol&) const;
  std::uint64_t append(std::uint64_t bytes, std::uint64_t align);
  std::uint64_t helper_slot(const std::string& name);
  std::uint64_t helper_stub(const std::string& name);
  void write_relative(std::uint64_t at, std::uint64_t target, std::int64_t addend);

  std::vector<Elf> elves_;
  std::vector<std::vector<std::uint64_t>> offsets_;  // of sections in the blob
  std::vector<Place> reached_;
  std::map<std::string, Definition> globals_;
  std::map<std::string, std::uint64_t> slots_, stubs_;
  Binary out_;
};

void Linker::define_globals() {
  for (std::size_t o = 0; o < elves_.size(); ++o)
    for (const Symbol& s : elves_[o].symbols)
      if (is_defined(s) && binding(s) != local_binding) {
        std::string name = elves_[o].name(s);
        bool is_new =
            globals_.emplace(name, Definition{{o, s.section}, s.value, is_function(s)}).second;
        HONE_ASSERT(is_new, "symbol ", name, " is defined by two objects");
      }
}

std::optional<Definition> Linker::find(const Elf& elf, std::size_t object, const Symbol& s) const {
  if (is_defined(s)) return Definition{{object, s.section}, s.value, is_function(s)};
  auto it = globals_.find(elf.name(s));
  if (it == globals_.end()) return std::nullopt;
  return it->second;
}

// Omits sections that code does not reference: constructors and tables of the sanitizers, notes,
// unwind tables.
void Linker::reach(Place first) {
  std::vector<Place> work = {first};
  while (!work.empty()) {
    Place p = work.back();
    work.pop_back();
    if (std::exchange(offset(p), 0) != not_placed) continue;
    const Section& s = section(p);
    HONE_ASSERT((s.flags & allocated) && !(s.flags & writable) && s.type != no_bits,
                "kernels refer to a section that is not constant");
    reached_.push_back(p);
    const Elf& elf = elves_[p.object];
    for (const Relocation& r : elf.relocations_of.at(p.section))
      if (auto d = find(elf, p.object, elf.symbols.at(r.symbol))) work.push_back(d->place);
  }
}

std::uint64_t Linker::append(std::uint64_t bytes, std::uint64_t align) {
  align = std::max<std::uint64_t>(align, 1);
  HONE_ASSERT(align <= blob_align, "a section is aligned to ", align);
  std::uint64_t at = (out_.code.size() + align - 1) / align * align;
  out_.code.resize(at + bytes, std::byte{0});
  return at;
}

// Text first, then constants, each on separate cache lines.
void Linker::place_sections() {
  std::stable_sort(reached_.begin(), reached_.end(), [&](Place a, Place b) {
    return (section(a).flags & executable) > (section(b).flags & executable);
  });
  for (std::size_t i = 0; i < reached_.size(); ++i) {
    const Section& s = section(reached_[i]);
    bool turns = i && (s.flags & executable) != (section(reached_[i - 1]).flags & executable);
    std::uint64_t at = append(s.size, turns ? blob_align : s.align);
    offset(reached_[i]) = at;
    std::span<const std::byte> content = elves_[reached_[i].object].content(s);
    std::copy(content.begin(), content.end(), out_.code.begin() + static_cast<std::ptrdiff_t>(at));
  }
}

std::uint64_t Linker::helper_slot(const std::string& name) {
  auto [it, is_new] = slots_.try_emplace(name, 0);
  if (!is_new) return it->second;
  std::optional<std::uint32_t> helper = helper_number(name);
  HONE_ASSERT(helper, "symbol ", name,
              " is neither in the objects nor in the table of plan/binary.cpp");
  it->second = append(8, 8);
  out_.helpers.push_back({it->second, *helper});
  return it->second;
}

// A direct call cannot reach another mapping, so it goes to a jump through the slot.
std::uint64_t Linker::helper_stub(const std::string& name) {
  auto [it, is_new] = stubs_.try_emplace(name, 0);
  if (!is_new) return it->second;
  std::uint64_t slot = helper_slot(name);
  std::uint64_t at = append(6, 8);
  out_.code[at] = std::byte{0xff};  // jmp *slot(%rip)
  out_.code[at + 1] = std::byte{0x25};
  write_relative(at + 2, slot, -4);
  return it->second = at;
}

void Linker::write_relative(std::uint64_t at, std::uint64_t target, std::int64_t addend) {
  HONE_ASSERT(out_.code.size() >= 4 && at <= out_.code.size() - 4, "relocation at ", at);
  std::int64_t distance =
      static_cast<std::int64_t>(target) + addend - static_cast<std::int64_t>(at);
  std::int32_t narrow = static_cast<std::int32_t>(distance);
  HONE_ASSERT(narrow == distance, "the blob is larger than 2 GiB");
  std::memcpy(out_.code.data() + at, &narrow, sizeof narrow);
}

// The address of something in the blob is known relative to the code, so the load of its address
// becomes lea, and the call through it a direct call.
void Linker::relax_got(std::uint64_t at, std::uint64_t target, const std::string& name) {
  HONE_ASSERT(at >= 2, "relocation at ", at);
  std::byte& opcode = out_.code[at - 2];
  std::byte& operand = out_.code[at - 1];
  if (opcode == std::byte{0x8b}) {
    opcode = std::byte{0x8d};
  } else if (opcode == std::byte{0xff} && operand == std::byte{0x15}) {
    opcode = std::byte{0x67};  // a no-op prefix fills the sixth byte
    operand = std::byte{0xe8};
  } else {
    HONE_ASSERT(false, "symbol ", name,
                " is used through a table by an instruction that is not known");
  }
  write_relative(at, target, -4);
}

void Linker::apply(const Elf& elf, std::size_t object, std::uint64_t base, const Relocation& r) {
  const Symbol& symbol = elf.symbols.at(r.symbol);
  const std::uint64_t at = base + r.offset;
  const bool is_direct = r.type == pc32 || r.type == plt32;
  const bool is_table =
      r.type == got_pc_relative || r.type == got_pc_relative_x || r.type == rex_got_pc_relative_x;
  std::string name = kind(symbol) == section_symbol ? "of a section" : elf.name(symbol);
  HONE_ASSERT(is_direct || is_table, "relocation ", r.type, " against symbol ", name,
              " does not fit position-independent code");
  if (std::optional<Definition> d = find(elf, object, symbol)) {
    std::uint64_t target = offset(d->place) + d->value;
    if (is_direct) return write_relative(at, target, r.addend);
    return relax_got(at, target, name);
  }
  write_relative(at, is_direct ? helper_stub(name) : helper_slot(name), r.addend);
}

void Linker::relocate(Place p) {
  const Elf& elf = elves_[p.object];
  for (const Relocation& r : elf.relocations_of.at(p.section)) apply(elf, p.object, offset(p), r);
}

void Linker::name_entries() {
  for (const auto& [name, d] : globals_)
    if (d.is_function) out_.entries.push_back({name, offset(d.place) + d.value});
}

}  // namespace

Binary link_objects(std::span<const Object> objects, std::string_view target) {
  return Linker(objects, target).run();
}

}  // namespace hone::llvm

// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/files/kept/records.h"

#include <cstring>
#include <iterator>

namespace rocegw::far {
namespace {

enum class Kind : uint8_t {
  kNode = 1,
  kNoNode = 2,
  kName = 3,
  kData = 4,
  kBlock = 5,
  kNoBlock = 6
};

template <typename T>
void Put(std::string& text, T value) {
  text.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void PutText(std::string& text, std::string_view value) {
  Put(text, static_cast<uint32_t>(value.size()));
  text.append(value);
}

void PutTime(std::string& text, timespec time) {
  Put(text, static_cast<int64_t>(time.tv_sec));
  Put(text, static_cast<int64_t>(time.tv_nsec));
}

// Takes fields off the front of a text. A field that is cut off makes the reader fail.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  template <typename T>
  T Get() {
    T value{};
    if (text_.size() < sizeof value) {
      failed_ = true;
      return value;
    }
    std::memcpy(&value, text_.data(), sizeof value);
    text_.remove_prefix(sizeof value);
    return value;
  }
  std::string GetText() {
    const auto size = Get<uint32_t>();
    if (text_.size() < size) {
      failed_ = true;
      return {};
    }
    std::string value(text_.substr(0, size));
    text_.remove_prefix(size);
    return value;
  }
  timespec GetTime() {
    timespec time{};
    time.tv_sec = static_cast<time_t>(Get<int64_t>());
    time.tv_nsec = static_cast<long>(Get<int64_t>());
    return time;
  }
  bool empty() const { return text_.empty(); }
  bool failed() const { return failed_; }

 private:
  std::string_view text_;
  bool failed_ = false;
};

}  // namespace

void RecordWriter::Node(uint64_t number, const NodeState& state) {
  Put(text_, Kind::kNode);
  Put(text_, number);
  Put(text_, static_cast<uint32_t>(state.mode));
  Put(text_, static_cast<uint32_t>(state.uid));
  Put(text_, static_cast<uint32_t>(state.gid));
  Put(text_, static_cast<uint64_t>(state.device));
  Put(text_, state.links);
  PutTime(text_, state.accessed);
  PutTime(text_, state.changed);
  PutTime(text_, state.modified);
  Put(text_, state.parent);
  PutText(text_, state.target);
}

void RecordWriter::NoNode(uint64_t number) {
  Put(text_, Kind::kNoNode);
  Put(text_, number);
}

void RecordWriter::Name(uint64_t directory, std::string_view name, uint64_t number) {
  Put(text_, Kind::kName);
  Put(text_, directory);
  PutText(text_, name);
  Put(text_, number);
}

void RecordWriter::Data(uint64_t number, uint64_t size, timespec modified) {
  Put(text_, Kind::kData);
  Put(text_, number);
  Put(text_, size);
  PutTime(text_, modified);
}

void RecordWriter::Block(uint64_t number, uint64_t index, const BlockState* state) {
  Put(text_, state != nullptr ? Kind::kBlock : Kind::kNoBlock);
  Put(text_, number);
  Put(text_, index);
  if (state == nullptr) return;
  Put(text_, state->block);
  Put(text_, state->written);
}

bool KeptFiles::Apply(std::string_view records) {
  Reader reader(records);
  while (!reader.empty()) {
    const auto kind = reader.Get<Kind>();
    const auto number = reader.Get<uint64_t>();
    switch (kind) {
      case Kind::kNode: {
        NodeState& state = nodes[number].state;
        state.mode = reader.Get<uint32_t>();
        state.uid = reader.Get<uint32_t>();
        state.gid = reader.Get<uint32_t>();
        state.device = reader.Get<uint64_t>();
        state.links = reader.Get<uint32_t>();
        state.accessed = reader.GetTime();
        state.changed = reader.GetTime();
        state.modified = reader.GetTime();
        state.parent = reader.Get<uint64_t>();
        state.target = reader.GetText();
        break;
      }
      case Kind::kNoNode:
        nodes.erase(number);
        data.erase(number);
        break;
      case Kind::kName: {
        const std::string name = reader.GetText();
        const auto leads_to = reader.Get<uint64_t>();
        if (leads_to != 0) {
          nodes[number].names[name] = leads_to;
        } else if (const auto directory = nodes.find(number); directory != nodes.end()) {
          directory->second.names.erase(name);
        }
        break;
      }
      case Kind::kData: {
        Data& file = data[number];
        file.size = reader.Get<uint64_t>();
        file.modified = reader.GetTime();
        break;
      }
      case Kind::kBlock: {
        const auto index = reader.Get<uint64_t>();
        BlockState& block = data[number].blocks[index];
        block.block = reader.Get<uint32_t>();
        block.written = reader.Get<uint16_t>();
        break;
      }
      case Kind::kNoBlock: {
        const auto index = reader.Get<uint64_t>();
        if (const auto file = data.find(number); file != data.end())
          file->second.blocks.erase(index);
        break;
      }
      default:
        return false;
    }
    if (reader.failed()) return false;
  }
  return true;
}

bool KeptFiles::Finish(uint64_t root) {
  const auto top = nodes.find(root);
  if (top == nodes.end() || !top->second.state.IsDirectory()) return false;
  for (auto node = nodes.begin(); node != nodes.end();) {
    node = node->second.state.links == 0 ? nodes.erase(node) : std::next(node);
  }
  for (auto file = data.begin(); file != data.end();) {
    const auto node = nodes.find(file->first);
    const bool named = node != nodes.end() && S_ISREG(node->second.state.mode);
    file = named ? std::next(file) : data.erase(file);
  }
  for (const auto& [number, node] : nodes) {
    if (!node.state.IsDirectory() && !node.names.empty()) return false;
    for (const auto& [name, leads_to] : node.names) {
      if (!nodes.contains(leads_to)) return false;
    }
  }
  return true;
}

}  // namespace rocegw::far

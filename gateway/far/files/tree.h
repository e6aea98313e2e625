// SPDX-License-Identifier: Apache-2.0
// Tree of a mounted file system: directories, names and attributes, in the memory of the server.
// Times are arguments. Permissions are judged by the kernel (mount option default_permissions).
// Errors are negative errno values. Not thread-safe.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <ctime>
#include <functional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "gateway/far/files/file_data.h"

namespace rocegw::far {

struct Inode : NodeState {
  using Names = NodeNames;

  uint64_t number = 0;
  uint64_t lookups = 0;        // references of the kernel
  FileData::FilePointer file;  // regular files have it
  Names names;                 // directories have it
};

// Properties of a new node.
struct NewNode {
  mode_t mode = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  dev_t device = 0;
  std::string target;
  FileData::FilePointer file;
};

class Tree {
 public:
  static constexpr uint64_t kRoot = 1;
  static constexpr size_t kMostNameBytes = 255;

  // Bytes of the target of a symbolic link that count as a name.
  static constexpr uint64_t kTargetBytes = 256;

  // `most_names` bounds the memory of the tree.
  Tree(uint64_t most_names, const NewNode& root, timespec now);

  // nullptr: no such node. Valid until the node is removed.
  Inode* Find(uint64_t number);
  // nullptr and *error: the parent is no directory, or has no such name.
  Inode* Lookup(uint64_t parent, const char* name, int* error);
  // The node of a successful reply gets a reference of the kernel.
  void Reference(Inode& inode) { inode.lookups++; }
  void Forget(uint64_t number, uint64_t count);

  // *made is the new node.
  int Make(uint64_t parent, const char* name, const NewNode& node, timespec now, Inode** made);
  int Link(uint64_t number, uint64_t parent, const char* name, timespec now);
  int Unlink(uint64_t parent, const char* name, timespec now);
  int RemoveDirectory(uint64_t parent, const char* name, timespec now);
  enum class RenameKind : uint8_t { kReplace, kNoReplace, kExchange };
  int Rename(uint64_t from, const char* name, uint64_t to, const char* new_name, RenameKind kind,
             timespec now);

  // Trees that outlive this object: a journal has records of them. From now on the tree remembers
  // what changes.
  void KeepRecords() { tracks_ = true; }
  // The caller has changed attributes of the node.
  void Changed(const Inode& inode) {
    if (tracks_) changed_nodes_.insert(inode.number);
  }
  // Adds records of what has changed since the last call, or of everything.
  void Record(bool everything, RecordWriter& records);
  // Replaces the tree, which is unused, by that of an earlier object. `file` makes the data
  // of a regular file. Returns false when the data of one cannot be made.
  bool Restore(const KeptFiles& kept,
               const std::function<FileData::FilePointer(uint64_t number)>& file);

  uint64_t names() const { return names_; }
  uint64_t most_names() const { return most_names_; }

 private:
  Inode* Directory(uint64_t number, int* error);
  int Add(Inode& directory, const char* name, uint64_t number, uint64_t more, timespec now);
  void Remove(Inode& directory, const char* name, timespec now);
  void DropLink(Inode& inode, timespec now);
  bool IsWithin(uint64_t directory, uint64_t ancestor);
  void NameChanged(const Inode& directory, const char* name);

  const uint64_t most_names_;
  uint64_t names_ = 0;
  uint64_t next_number_ = kRoot;
  std::unordered_map<uint64_t, Inode> inodes_;  // references stay valid
  bool tracks_ = false;
  std::set<uint64_t> changed_nodes_;
  std::set<std::pair<uint64_t, std::string>> changed_names_;  // by directory
};

}  // namespace rocegw::far

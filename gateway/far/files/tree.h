// SPDX-License-Identifier: Apache-2.0
// Tree of a mounted file system: directories, names and attributes, in the memory of the server.
// Times are arguments. Permissions are judged by the kernel (mount option default_permissions).
// Errors are negative errno values. Not thread-safe.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <ctime>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>

#include "gateway/far/files/file_data.h"

namespace rocegw::far {

struct Inode {
  using Names = std::map<std::string, uint64_t, std::less<>>;

  uint64_t number = 0;
  mode_t mode = 0;  // type and permissions
  uid_t uid = 0;
  gid_t gid = 0;
  dev_t device = 0;  // device nodes have it
  uint32_t links = 0;
  uint64_t lookups = 0;  // references of the kernel
  timespec accessed{}, changed{};
  timespec modified{};         // not for regular files: their data knows it
  FileData::FilePointer file;  // regular files have it
  Names names;                 // directories have it
  uint64_t parent = 0;         // directories have it
  std::string target;          // symbolic links have it

  bool IsDirectory() const { return S_ISDIR(mode); }
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

  uint64_t names() const { return names_; }
  uint64_t most_names() const { return most_names_; }

 private:
  Inode* Directory(uint64_t number, int* error);
  int Add(Inode& directory, const char* name, uint64_t number, uint64_t more, timespec now);
  void Remove(Inode& directory, const char* name, timespec now);
  void DropLink(Inode& inode, timespec now);
  bool IsWithin(uint64_t directory, uint64_t ancestor);

  const uint64_t most_names_;
  uint64_t names_ = 0;
  uint64_t next_number_ = kRoot;
  std::unordered_map<uint64_t, Inode> inodes_;  // references stay valid
};

}  // namespace rocegw::far

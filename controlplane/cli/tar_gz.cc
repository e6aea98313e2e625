// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/tar_gz.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

namespace rocegw::cli {
namespace {

constexpr size_t kBlock = 512;

// POSIX.1-2001, pax, "ustar Interchange Format".
struct Header {
  char name[100];
  char mode[8];
  char uid[8];
  char gid[8];
  char size[12];
  char mtime[12];
  char checksum[8];
  char type;
  char link[100];
  char magic[6];
  char version[2];
  char user[32];
  char group[32];
  char major[8];
  char minor[8];
  char prefix[155];
  char padding[12];
};
static_assert(sizeof(Header) == kBlock);

// Writes octal digits that fill the field except for its terminator.
template <size_t N>
void PutOctal(char (&field)[N], uint64_t value) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%0*llo", static_cast<int>(N - 1),
                static_cast<unsigned long long>(value));
  std::memcpy(field, digits, N - 1);
}

}  // namespace

void TarGz::Add(const std::string& name, const std::string& content) {
  Header header{};
  std::memcpy(header.name, name.data(), std::min(name.size(), sizeof header.name));
  PutOctal(header.mode, 0600);
  PutOctal(header.uid, 0);
  PutOctal(header.gid, 0);
  PutOctal(header.size, content.size());
  PutOctal(header.mtime, static_cast<uint64_t>(std::max<int64_t>(time_, 0)));
  header.type = '0';
  std::memcpy(header.magic, "ustar", sizeof header.magic);
  std::memcpy(header.version, "00", sizeof header.version);
  std::memset(header.checksum, ' ', sizeof header.checksum);
  std::array<unsigned char, kBlock> bytes{};
  std::memcpy(bytes.data(), &header, kBlock);
  uint64_t sum = 0;
  for (const unsigned char byte : bytes) sum += byte;
  char digits[8];
  std::snprintf(digits, sizeof digits, "%06llo", static_cast<unsigned long long>(sum));
  std::memcpy(header.checksum, digits, 7);
  tar_.append(reinterpret_cast<const char*>(&header), kBlock);
  tar_ += content;
  tar_.resize((tar_.size() + kBlock - 1) / kBlock * kBlock, '\0');
}

std::string TarGz::Finish() const {
  // Two empty blocks end the archive.
  const std::string all = tar_ + std::string(2 * kBlock, '\0');
  z_stream stream{};
  constexpr int kGzip = 15 + 16;
  constexpr int kMemory = 8;
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzip, kMemory,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    return {};
  }
  std::string out;
  std::array<char, 65536> chunk{};
  size_t taken = 0;
  int rc = Z_OK;
  while (rc == Z_OK) {
    if (stream.avail_in == 0) {
      const size_t next = std::min(all.size() - taken, chunk.size());
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(all.data() + taken));
      stream.avail_in = static_cast<uInt>(next);
      taken += next;
    }
    stream.next_out = reinterpret_cast<Bytef*>(chunk.data());
    stream.avail_out = static_cast<uInt>(chunk.size());
    rc = deflate(&stream, taken == all.size() ? Z_FINISH : Z_NO_FLUSH);
    out.append(chunk.data(), chunk.size() - stream.avail_out);
  }
  deflateEnd(&stream);
  return rc == Z_STREAM_END ? out : std::string();
}

}  // namespace rocegw::cli

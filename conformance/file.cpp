// SPDX-License-Identifier: Apache-2.0
#include "conformance/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "conformance/contract.hpp"
#include "conformance/growing_file.hpp"

namespace qkcts {
namespace {

constexpr std::size_t buffered = std::size_t{1} << 16;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { close(); }
  int get() const { return fd_; }
  int close() {
    const int fd = std::exchange(fd_, -1);
    return fd < 0 ? 0 : ::close(fd);
  }

 private:
  int fd_;
};

std::string reason() {
  return std::strerror(errno);
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

std::string read_text_file(const std::string& path, std::uint64_t longest) {
  // O_NONBLOCK: opening a named pipe without a writer would wait for ever.
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) throw InputError(fmt::format("{}: cannot be opened: {}", path, reason()));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw InputError(fmt::format("{}: {}", path, reason()));
  if (!S_ISREG(status.st_mode)) throw InputError(fmt::format("{}: is no regular file", path));
  if (static_cast<std::uint64_t>(status.st_size) > longest)
    throw InputError(fmt::format("{}: is longer than {} bytes", path, longest));
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t length = 0;
  while (length < text.size()) {
    const ssize_t got = ::read(file.get(), text.data() + length, text.size() - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw InputError(fmt::format("{}: cannot be read: {}", path, reason()));
    if (got == 0) break;  // it was cut while it was read
    length += static_cast<std::size_t>(got);
  }
  text.resize(length);
  return text;
}

void require_replaceable(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))
    throw WriteError(fmt::format("{}: is no regular file, and would be replaced by one", path));
}

void write_file_atomically(const std::string& path, const std::function<void(const TextSink& sink)>& write) {
  require_replaceable(path);
  const std::string temporary = fmt::format("{}.partial.{}", path, ::getpid());
  Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (file.get() < 0) throw WriteError(fmt::format("{}: cannot be created: {}", path, reason()));
  const auto give_up = [&] {
    const std::string why = reason();
    ::unlink(temporary.c_str());
    throw WriteError(fmt::format("{}: cannot be written: {}", path, why));
  };
  std::string waiting;
  const auto pass_on = [&](std::string_view piece) {
    if (!write_all(file.get(), piece)) give_up();
  };
  try {
    write([&](std::string_view piece) {
      if (waiting.size() + piece.size() >= buffered) {
        pass_on(std::exchange(waiting, {}));
        if (piece.size() >= buffered) return pass_on(piece);
      }
      waiting += piece;
    });
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  pass_on(waiting);
  if (::fsync(file.get()) != 0 || file.close() != 0 || ::rename(temporary.c_str(), path.c_str()) != 0) give_up();
}

void write_file_atomically(const std::string& path, std::string_view text) {
  write_file_atomically(path, [text](const TextSink& sink) { sink(text); });
}

std::string text_of(const std::function<void(const TextSink& sink)>& write) {
  std::string text;
  write([&text](std::string_view piece) { text += piece; });
  return text;
}

}  // namespace qkcts

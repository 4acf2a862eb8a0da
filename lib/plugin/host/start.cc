// No memory is allocated here: the allocator's would lie where the kernel chooses.
#include "plugin/host/start.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arch/plugin_host.h"

namespace ktrace::plugin::host {

namespace {

constexpr std::uint64_t lowest = 0x10000; // below that programs may not map anything (vm.mmap_min_addr)
constexpr std::size_t stack_bytes = std::size_t{8} << 20;
constexpr std::size_t guard_bytes = std::size_t{1} << 20; // below the stack

struct Range {
    std::uint64_t start, end;
    bool system; // the vdso and its data
};

/// Where something is mapped, by /proc/self/maps.
struct Ranges {
    Range all[256];
    std::size_t count = 0;
};

std::uint64_t read_hex(const char *&at) {
    std::uint64_t value = 0;
    for (; *at != 0; at++) {
        char c = *at;
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0) break;
        value = value << 4 | static_cast<unsigned>(digit);
    }
    return value;
}

bool read_ranges(Ranges &ranges) {
    static char text[65536];
    int fd = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    std::size_t size = 0;
    ssize_t got = 0;
    while (size + 1 < sizeof text && (got = ::read(fd, text + size, sizeof text - 1 - size)) > 0)
        size += static_cast<std::size_t>(got);
    ::close(fd);
    if (got < 0 || size + 1 >= sizeof text) return false;
    text[size] = 0;
    ranges.count = 0;
    for (const char *line = text; *line != 0;) {
        const char *end = std::strchr(line, '\n');
        if (!end || ranges.count == std::size(ranges.all)) return false;
        Range &range = ranges.all[ranges.count];
        range.start = read_hex(line);
        line++;
        range.end = read_hex(line);
        std::size_t rest = static_cast<std::size_t>(end - line);
        range.system = ::memmem(line, rest, "[vdso]", 6) != nullptr || ::memmem(line, rest, "[vvar", 5) != nullptr;
        line = end + 1;
        if (range.start >> 63 == 0) ranges.count++; // x86's vsyscall page lies in the kernel's half
    }
    return true;
}

std::uint64_t page_down(std::uint64_t at) { return at & ~std::uint64_t{page_size - 1}; }
std::uint64_t page_up(std::uint64_t at) { return page_down(at + page_size - 1); }

void *pointer(std::uint64_t at) { return reinterpret_cast<void *>(at); }
std::uint64_t address(const void *at) { return reinterpret_cast<std::uint64_t>(at); }

bool reserve(std::uint64_t start, std::uint64_t end) {
    if (start >= end) return true;
    return ::mmap(pointer(start), end - start, PROT_NONE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0) == pointer(start);
}

/// Reserves [start, end) but for the window.
bool reserve_around(std::uint64_t start, std::uint64_t end, const Window &window) {
    return reserve(start, std::min(end, window.start)) &&
           reserve(std::max(start, window.start + window.size), std::max(end, window.start + window.size));
}

/// The end of what programs may map: a power of two, less a page on some machines.
std::uint64_t top() {
    for (unsigned bits = 52; bits >= 36; bits--) {
        std::uint64_t last = (std::uint64_t{1} << bits) - 2 * page_size;
        void *probed = ::mmap(pointer(last), page_size, PROT_NONE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
        if (probed != MAP_FAILED) ::munmap(probed, page_size);
        if (probed == pointer(last) || (probed == MAP_FAILED && errno == EEXIST)) return last + page_size;
    }
    return 0;
}

bool reserve_all(const Ranges &ranges, const Window &window) {
    std::uint64_t from = lowest;
    for (std::size_t i = 0; i < ranges.count; i++) {
        const Range &range = ranges.all[i];
        if (range.start < window.start + window.size && window.start < range.end) return false;
        if (!reserve_around(from, range.start, window)) return false;
        from = std::max(from, range.end);
    }
    std::uint64_t end = top();
    return end != 0 && reserve_around(from, end, window);
}

/// Anonymous memory in the window: nothing else is free.
std::uint64_t room(std::size_t size) {
    void *at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? 0 : address(at);
}

/// Moves the vdso and its data, which must keep their distance. 0: they do not move; one can do without.
std::uint64_t move_vdso(const Ranges &ranges) {
    std::uint64_t first = 0, last = 0;
    for (std::size_t i = 0; i < ranges.count; i++) {
        if (!ranges.all[i].system) continue;
        if (first == 0) first = ranges.all[i].start;
        last = ranges.all[i].end;
    }
    std::uint64_t vdso = ::getauxval(AT_SYSINFO_EHDR);
    if (first == 0 || vdso < first || vdso >= last) return 0;
    std::uint64_t to = room(last - first);
    if (to == 0) return 0;
    for (std::size_t i = 0; i < ranges.count; i++) {
        const Range &range = ranges.all[i];
        if (!range.system) continue;
        std::uint64_t at = to + (range.start - first);
        if (::mremap(pointer(range.start), range.end - range.start, range.end - range.start,
                     MREMAP_MAYMOVE | MREMAP_FIXED, pointer(at)) == MAP_FAILED)
            return 0;
        if (!reserve(range.start, range.end)) return 0; // it is a hole now
    }
    return to + (vdso - first);
}

/// The path of the dynamic loader, as our own program names it.
const char *loader_path() {
    auto *headers = reinterpret_cast<const ElfW(Phdr) *>(::getauxval(AT_PHDR));
    std::size_t count = ::getauxval(AT_PHNUM);
    std::uint64_t bias = 0;
    for (std::size_t i = 0; i < count; i++)
        if (headers[i].p_type == PT_PHDR) bias = address(headers) - headers[i].p_vaddr;
    for (std::size_t i = 0; i < count; i++)
        if (headers[i].p_type == PT_INTERP) return reinterpret_cast<const char *>(bias + headers[i].p_vaddr);
    return nullptr;
}

struct Loaded {
    std::uint64_t entry = 0, headers = 0, header_count = 0;
};

int protection(const ElfW(Phdr) & segment) {
    return ((segment.p_flags & PF_R) ? PROT_READ : 0) | ((segment.p_flags & PF_W) ? PROT_WRITE : 0) |
           ((segment.p_flags & PF_X) ? PROT_EXEC : 0);
}

bool map_segment(int fd, const ElfW(Phdr) & segment, std::uint64_t bias) {
    std::uint64_t start = page_down(bias + segment.p_vaddr);
    std::uint64_t file_end = bias + segment.p_vaddr + segment.p_filesz;
    std::uint64_t end = page_up(bias + segment.p_vaddr + segment.p_memsz);
    if (::mmap(pointer(start), file_end - start, protection(segment), MAP_PRIVATE | MAP_FIXED, fd,
               static_cast<off_t>(page_down(segment.p_offset))) == MAP_FAILED)
        return false;
    if (segment.p_memsz == segment.p_filesz) return true;
    std::memset(pointer(file_end), 0, page_up(file_end) - file_end);
    return page_up(file_end) >= end || ::mmap(pointer(page_up(file_end)), end - page_up(file_end), protection(segment),
                                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
}

/// Maps an ELF file (System V ABI, program loading) with all of its segments in one free range.
bool load(const char *path, Loaded &loaded) {
    int fd = ::open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    ElfW(Ehdr) header;
    ElfW(Phdr) segments[32];
    bool read = ::pread(fd, &header, sizeof header, 0) == sizeof header && header.e_phnum <= std::size(segments);
    std::size_t size = read ? header.e_phnum * sizeof(ElfW(Phdr)) : 0;
    read = read && ::pread(fd, segments, size, static_cast<off_t>(header.e_phoff)) == static_cast<ssize_t>(size);
    std::uint64_t end = 0, alignment = page_size;
    for (std::size_t i = 0; read && i < header.e_phnum; i++) {
        if (segments[i].p_type != PT_LOAD) continue;
        end = std::max<std::uint64_t>(end, segments[i].p_vaddr + segments[i].p_memsz);
        alignment = std::max<std::uint64_t>(alignment, segments[i].p_align);
    }
    std::uint64_t bias = read && end != 0 ? room(page_up(end) + alignment) : 0;
    bool mapped = bias != 0;
    bias = (bias + alignment - 1) / alignment * alignment;
    for (std::size_t i = 0; mapped && i < header.e_phnum; i++)
        if (segments[i].p_type == PT_LOAD) mapped = map_segment(fd, segments[i], bias);
    ::close(fd);
    loaded = {bias + header.e_entry, bias + header.e_phoff, header.e_phnum};
    return mapped;
}

/// A stack as a program finds it: from its lower end up argc, argv, environment, auxiliary vector; texts above.
class FirstStack {
  public:
    explicit FirstStack(std::uint64_t top) : texts_(top) {}

    std::uint64_t bytes(const void *from, std::size_t size) {
        texts_ -= size;
        std::memcpy(pointer(texts_), from, size);
        return texts_;
    }
    std::uint64_t text(const char *from) { return bytes(from, std::strlen(from) + 1); }
    bool word(std::uint64_t value) {
        if (count_ == std::size(words_)) return false;
        words_[count_++] = value;
        return true;
    }
    /// The stack pointer.
    std::uint64_t finish() {
        std::uint64_t at = (texts_ - count_ * sizeof words_[0]) & ~std::uint64_t{15};
        std::memcpy(pointer(at), words_, count_ * sizeof words_[0]);
        return at;
    }

  private:
    std::uint64_t texts_;
    static inline std::uint64_t words_[8192];
    std::size_t count_ = 0;
};

bool push_auxv(FirstStack &stack, const Loaded &loader, std::uint64_t vdso, const char *program) {
    bool fits = true;
    auto pair = [&](std::uint64_t type, std::uint64_t value) { fits = fits && stack.word(type) && stack.word(value); };
    int fd = ::open("/proc/self/auxv", O_RDONLY | O_CLOEXEC);
    ElfW(auxv_t) entry;
    while (fd >= 0 && ::read(fd, &entry, sizeof entry) == sizeof entry && entry.a_type != AT_NULL) {
        std::uint64_t value = entry.a_un.a_val;
        switch (entry.a_type) {
        case AT_PHDR: value = loader.headers; break;
        case AT_PHNUM: value = loader.header_count; break;
        case AT_ENTRY: value = loader.entry; break;
        case AT_BASE: value = 0; break; // the loader is run as a program itself
        case AT_RANDOM: value = stack.bytes(pointer(value), 16); break;
        case AT_PLATFORM:
        case AT_BASE_PLATFORM: value = stack.text(static_cast<const char *>(pointer(value))); break;
        case AT_EXECFN: value = stack.text(program); break;
        case AT_SYSINFO_EHDR:
            if (vdso == 0) continue;
            value = vdso;
            break;
        default: break;
        }
        pair(entry.a_type, value);
    }
    if (fd >= 0) ::close(fd);
    pair(AT_NULL, 0);
    return fits && fd >= 0;
}

/// The kernel writes to memory of ours that is about to go.
void unregister_from_kernel() {
    if (__rseq_size == 0) return;
    constexpr unsigned registered_size = 32, unregister_flag = 1;
    auto *area = static_cast<char *>(__builtin_thread_pointer()) + __rseq_offset;
    ::syscall(SYS_rseq, area, registered_size, unregister_flag, RSEQ_SIG);
}

} // namespace

const char *start_in(const Window &window, const char *mark, int argc, char **argv) {
    static Ranges ranges;
    static char program[4096];
    ssize_t length = ::readlink("/proc/self/exe", program, sizeof program - 1);
    const char *path = loader_path();
    if (length <= 0 || !path) return "its own program cannot be found";
    if (!read_ranges(ranges)) return "its memory map cannot be read";
    if (!reserve_all(ranges, window)) return "its memory cannot be laid out (a limit on address space, ulimit -v?)";
    Loaded loader;
    std::uint64_t stack_at = room(guard_bytes + stack_bytes);
    if (stack_at == 0 || ::mprotect(pointer(stack_at), guard_bytes, PROT_NONE) != 0) return "there is no stack for it";
    if (!load(path, loader)) return "the dynamic loader cannot be mapped";
    std::uint64_t vdso = move_vdso(ranges);
    FirstStack stack(stack_at + guard_bytes + stack_bytes);
    bool fits = stack.word(static_cast<std::uint64_t>(argc) + 2) && stack.word(stack.text(path)) &&
                stack.word(stack.text(program)) && stack.word(stack.text(mark));
    for (int i = 1; i < argc; i++) fits = fits && stack.word(stack.text(argv[i]));
    fits = fits && stack.word(0);
    for (char **each = environ; *each; each++) fits = fits && stack.word(stack.text(*each));
    fits = fits && stack.word(0) && push_auxv(stack, loader, vdso, program);
    if (!fits) return "its arguments and environment are too long";
    unregister_from_kernel();
    arch::begin_program(loader.entry, stack.finish());
}

bool leave_old_places(const Window &window) {
    static Ranges ranges;
    if (!read_ranges(ranges)) return false;
    for (std::size_t i = 0; i < ranges.count; i++) {
        const Range &range = ranges.all[i];
        if (window.contains(range.start)) continue;
        if (::mmap(pointer(range.start), range.end - range.start, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
            return false;
    }
    return true;
}

} // namespace ktrace::plugin::host

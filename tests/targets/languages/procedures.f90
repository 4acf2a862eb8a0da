! Procedures of modules and internal ones. Prints "NAME called N" of each.
module shapes
  implicit none
contains
  subroutine show(n)
    integer, intent(in) :: n
    if (n < 0) print *, 'negative'
  end subroutine
end module
program main
  use shapes
  implicit none
  call show(5)
  call inner(9)
  call inner(10)
  print '(a)', 'shapes::show called 1'
  print '(a)', 'inner called 2'
contains
  subroutine inner(k)
    integer, intent(in) :: k
    if (k < 0) print *, 'negative'
  end subroutine
end program

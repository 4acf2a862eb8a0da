! Arguments by reference, arrays and texts. Prints the line of each call as ktrace has to.
module shapes
  implicit none
  type point
    integer :: id
    real(8) :: x(3)
    character(len=8) :: tag
  end type
contains
  subroutine show(p, n, s, a, big)
    type(point), intent(in) :: p
    integer, intent(in) :: n
    character(len=*), intent(in) :: s
    integer, intent(in) :: a(2,3)
    logical, intent(in) :: big
    print '(a,i0,a,f3.1,a,f3.1,a,f3.1,a,a,a,i0,a,a,a,6(i0,a),a,a)', 'show(p={.id=', p%id, ', .x=[', p%x(1), ', ', p%x(2), &
      ', ', p%x(3), '], .tag="', p%tag, '"}, n=', n, ', s="', s, '", a=[[', a(1,1), ', ', a(2,1), '], [', a(1,2), ', ', &
      a(2,2), '], [', a(1,3), ', ', a(2,3), ']], big=', trim(merge('true ', 'false', big)), ')'
    call flush(6)
  end subroutine
  subroutine several(first, k, second, low)
    character(len=*), intent(in) :: first, second
    integer(8), intent(in), value :: k
    integer, intent(in) :: low(-1:1)
    print '(a,a,a,i0,a,a,a,3(i0,a))', 'several(first="', first, '", k=', k, ', second="', second, '", low=[', &
      low(-1), ', ', low(0), ', ', low(1), '])'
    call flush(6)
  end subroutine
end module
program main
  use shapes
  implicit none
  type(point) :: p
  integer :: a(2,3)
  p%id = 7
  p%x = [1.5d0, 2.5d0, 3.5d0]
  p%tag = 'blue'
  a = reshape([11, 21, 12, 22, 13, 23], [2, 3])
  call show(p, 5, 'hello', a, .true.)
  call several('one', 12345678901_8, 'second', [4, 5, 6])
end program
